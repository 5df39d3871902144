"""Lists of tensors of one shape, as TensorArray and Keras's recurrent layers use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.frontends.assembly import cast, concat, cut, number, pick, reshape, shape_of, squeeze, unsqueeze
from compiler.frontends.tensorflow.lists import TensorList, merged
from compiler.frontends.tensorflow.site import Item, Results, Site, converts
from compiler.frontends.tensorflow.types import element_from
from compiler.ir import UNKNOWN, Value
from compiler.ops.indexing import Gather, ScatterNd

if TYPE_CHECKING:
    from compiler.ir import Dim


def _list(site: Site, index: int = 0) -> TensorList:
    found = site.inputs[index]
    if not isinstance(found, TensorList):
        site.refuse(f"input {index} is no list of tensors that has a conversion")
    return found


def _dims(site: Site, index: int) -> tuple[Dim, ...] | None:
    """The shape of elements that an input gives; -1 is open, a scalar -1 says nothing."""
    known = site.known(site.value(index))
    if known is None or known.ndim == 0:
        return None
    return tuple(UNKNOWN if size < 0 else int(size) for size in known.tolist())


@converts("EmptyTensorList")
def empty(site: Site) -> Item:
    """No elements."""
    element = element_from(site.attr("element_dtype"), "the elements of a list")
    return TensorList(element, _dims(site, 0))


@converts("TensorListReserve")
def reserve(site: Site) -> Item:
    """A number of elements that are to be set."""
    element = element_from(site.attr("element_dtype"), "the elements of a list")
    return TensorList(element, _dims(site, 0), None, site.whole(1, "the number of elements"))


@converts("TensorListFromTensor")
def from_tensor(site: Site) -> Item:
    """The slices along the first dim."""
    value = site.value(0)
    return TensorList(value.tensor.element, merged(site.dims(value)[1:], _dims(site, 1)), value)


@converts("TensorListSetItem")
def set_item(site: Site) -> Item:
    """The list with an element replaced."""
    found, item = _list(site), site.value(2)
    found.seen.append(item.tensor)
    place = reshape(site, site.as_int64(site.value(1)), [1, 1])
    rows = site.op(ScatterNd, found.stacked(site), place, unsqueeze(site, item, (0,)))
    return found.of(rows)


@converts("TensorListGetItem")
def get_item(site: Site) -> Value:
    """An element."""
    return pick(site, _list(site).stacked(site), 0, site.value(1))


@converts("TensorListStack")
def stack(site: Site) -> Value:
    """All elements along a new first dim."""
    found = _list(site)
    dims = merged(found.dims, _dims(site, 1))
    return TensorList(found.element, dims, found.value, found.count, found.seen).stacked(site)


@converts("TensorListLength")
def length(site: Site) -> Value:
    """The number of elements."""
    found = _list(site)
    if found.value is None:
        return number(site, found.count, site.element())
    return site.folded(cast(site, squeeze(site, shape_of(site, found.value, 0, 1), (0,)), site.element()))


@converts("TensorListElementShape")
def element_shape(site: Site) -> Value:
    """The sizes of an element, -1 where one is open."""
    found = _list(site)
    if found.dims is None:
        return number(site, -1, site.element())
    return site.constant([dim if isinstance(dim, int) else -1 for dim in found.dims], site.element())


def _joined(site: Site, found: TensorList, rows: Value) -> TensorList:
    """The list with rows behind its elements."""
    if found.value is None and found.count == 0:
        return found.of(rows)
    return found.of(concat(site, [found.stacked(site), rows], 0))


@converts("TensorListPushBack")
def push_back(site: Site) -> Item:
    """The list with an element at its end."""
    found, item = _list(site), site.value(1)
    found.seen.append(item.tensor)
    return _joined(site, found, unsqueeze(site, item, (0,)))


@converts("TensorListPopBack")
def pop_back(site: Site) -> Results:
    """The list without its last element, and that."""
    found = _list(site)
    rows = found.stacked(site)
    return [found.of(cut(site, rows, 0, 0, -1)), pick(site, rows, 0, -1)]


@converts("TensorListConcatLists")
def concat_lists(site: Site) -> Item:
    """The elements of both."""
    a, b = _list(site, 0), _list(site, 1)
    if b.value is None and b.count == 0:
        return a
    return _joined(site, a, b.stacked(site))


@converts("TensorListConcat", "TensorListConcatV2")
def concat_elements(site: Site) -> Results:
    """The elements along their own first dim, and how long each is."""
    rows = _list(site).stacked(site)
    count, size, *rest = site.sizes(rows)
    return [reshape(site, rows, [count * size, *rest]), site.constant(np.full(count, size), site.element(1))]


@converts("TensorListSplit")
def split(site: Site) -> Item:
    """Parts of a tensor along its first dim, all of one length."""
    x, lengths = site.value(0), site.ints(2, "the lengths")
    if len(set(lengths)) != 1:
        site.refuse(f"parts of lengths {lengths}; expected equal ones, as a list's elements have one shape")
    rows = reshape(site, x, [len(lengths), lengths[0], *site.sizes(x)[1:]])
    return TensorList(x.tensor.element, site.dims(rows)[1:], rows)


@converts("TensorListGather")
def gather(site: Site) -> Value:
    """Some elements along a new first dim."""
    return site.op(Gather, _list(site).stacked(site), site.value(1), axis=0)


@converts("TensorListScatter", "TensorListScatterV2")
def scatter(site: Site) -> Item:
    """A list with the rows of a tensor at places."""
    rows, places = site.value(0), site.ints(1, "the places")
    wanted = site.whole(3, "the number of elements") if site.operator == "TensorListScatterV2" else -1
    count = wanted if wanted >= 0 else max(places, default=-1) + 1
    start = TensorList(rows.tensor.element, site.dims(rows)[1:], None, count)
    return _placed(site, start, rows, site.value(1))


@converts("TensorListScatterIntoExistingList")
def scatter_into(site: Site) -> Item:
    """The list with elements replaced."""
    found, rows = _list(site), site.value(1)
    found.seen.append(rows.tensor.with_dims(site.dims(rows)[1:]))
    return _placed(site, found, rows, site.value(2))


def _placed(site: Site, found: TensorList, rows: Value, places: Value) -> TensorList:
    indices = unsqueeze(site, site.as_int64(places), (1,))
    return found.of(site.op(ScatterNd, found.stacked(site), indices, rows))


@converts("TensorListResize")
def resize(site: Site) -> Item:
    """The list with elements cut off, or zeros added."""
    found, count = _list(site), site.whole(1, "the number of elements")
    if found.value is None:
        return TensorList(found.element, found.dims, None, count, found.seen)
    rows = found.value
    size = site.size(rows, 0)
    if count <= size:
        return found.of(cut(site, rows, 0, 0, count))
    zeros = site.constant(np.zeros((count - size, *site.sizes(rows)[1:])), rows.tensor.element)
    return found.of(concat(site, [rows, zeros], 0))
