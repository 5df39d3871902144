"""Views and copies that move elements: shapes, slices, repetition, joining, diagonals."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.frontends.torch.converters.common import (
    FAR,
    cast,
    concat,
    cut,
    dims_of,
    expand,
    flat,
    number,
    operand,
    pick,
    rank_of,
    reshape,
    shape_of,
    squeeze,
    swap,
    transpose,
    unsqueeze,
    vector,
)
from compiler.frontends.torch.site import Site, converts
from compiler.frontends.torch.types import element_from
from compiler.ir import I64, Value
from compiler.ops.creation import Range
from compiler.ops.elementwise import Add, Mul
from compiler.ops.indexing import Gather
from compiler.ops.movement import Reverse, Tile
from compiler.ops.padding import Trilu

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.frontends.torch.site import Converter


@converts(
    "alias",
    "clone",
    "contiguous",
    "detach",
    "lift_fresh_copy",
    "lift_fresh",
    "lift",
    "detach_copy",
    "alias_copy",
)
def identity(site: Site) -> Value:
    """The same elements."""
    return site.value("self")


@converts(
    "to.dtype", "to.dtype_layout", "to.device", "_to_copy", "to.other", "type_as", "to.prim_Device", "to.prim_dtype"
)
def to(site: Site) -> Value:
    """The elements in another type; devices and layouts mean nothing here."""
    return cast(site, site.value("self"), site.element())


@converts("view", "reshape", "_unsafe_view", "view_copy", "_reshape_alias")
def view(site: Site) -> Value:
    """The same elements in the same order under other sizes."""
    return reshape(site, site.value("self"), site.get("size", site.get("shape")) or [])


@converts("view.dtype")
def view_dtype(site: Site) -> Value:
    """The same bytes as another type of the same size."""
    from compiler.ops.convert import BitCast

    x, element = site.value("self"), element_from(site["dtype"])
    if element.bits != x.tensor.element.bits:
        site.refuse(f"{x.tensor.element} seen as {element}, which has another size")
    return x if element is x.tensor.element else site.op(BitCast, x, to=element)


@converts("view_as", "reshape_as")
def view_as(site: Site) -> Value:
    """Under the sizes of another tensor."""
    x, other = site.value("self"), site.value("other")
    if other.tensor.is_static:
        return reshape(site, x, other.tensor.shape)
    from compiler.frontends.torch.converters.common import reshape_to

    return reshape_to(site, x, shape_of(site, other))


@converts("flatten.using_ints")
def flatten(site: Site) -> Value:
    """Some dims as one."""
    x = site.value("self")
    rank = rank_of(x)
    if rank == 0:
        return reshape(site, x, [1])
    start, end = site.axis(site["start_dim"], rank), site.axis(site["end_dim"], rank)
    return _merged(site, x, start, end)


def _merged(site: Site, x: Value, start: int, end: int) -> Value:
    dims = dims_of(x)
    if start == end:
        return x
    return reshape(
        site, x, [*_sizes(site, x, 0, start), _product(dims[start : end + 1]), *_sizes(site, x, end + 1, len(dims))]
    )


def _product(dims: Sequence[int | str]) -> int:
    total = 1
    for dim in dims:
        if isinstance(dim, str):
            return -1
        total *= dim
    return total


def _sizes(site: Site, x: Value, start: int, end: int) -> list[Any]:
    """The sizes of some dims, numbers where they are known."""
    from compiler.frontends.torch.converters.common import size_value

    return [
        dim if isinstance(dim, int) else size_value(site, x, axis)
        for axis, dim in enumerate(dims_of(x)[:end])
        if axis >= start
    ]


@converts("ravel")
def ravel(site: Site) -> Value:
    """All dims as one."""
    return flat(site, site.value("self"))


@converts("unflatten.int")
def unflatten(site: Site) -> Value:
    """One dim as several."""
    x = site.value("self")
    axis, rank = site.axis(site["dim"], rank_of(x)), rank_of(x)
    sizes = list(site["sizes"])
    size = dims_of(x)[axis]
    if -1 in sizes and isinstance(size, int) and all(isinstance(item, int) for item in sizes):
        rest = 1
        for item in sizes:
            rest *= 1 if item == -1 else item
        sizes = [size // rest if item == -1 and rest else item for item in sizes]
    return reshape(site, x, [*_sizes(site, x, 0, axis), *sizes, *_sizes(site, x, axis + 1, rank)])


@converts("squeeze")
def squeeze_all(site: Site) -> Value:
    """Every dim of size 1 taken out."""
    x = site.value("self")
    return squeeze(site, x, [axis for axis, dim in enumerate(dims_of(x)) if dim == 1])


@converts("squeeze.dim", "squeeze.dims")
def squeeze_dims(site: Site) -> Value:
    """Some dims taken out where their size is 1."""
    x = site.value("self")
    axes = site["dim"] if isinstance(site["dim"], list) else [site["dim"]]
    taken = {site.axis(axis, rank_of(x)) for axis in axes} if rank_of(x) else set()
    return squeeze(site, x, [axis for axis in sorted(taken) if dims_of(x)[axis] == 1])


@converts("unsqueeze")
def unsqueeze_dim(site: Site) -> Value:
    """A dim of size 1 put in."""
    x = site.value("self")
    return unsqueeze(site, x, (site["dim"] % (rank_of(x) + 1),))


@converts("permute", "permute_copy")
def permute(site: Site) -> Value:
    """Dims in another order."""
    x = site.value("self")
    return transpose(site, x, [site.axis(axis, rank_of(x)) for axis in site["dims"]])


@converts("transpose.int", "swapaxes", "swapdims")
def transpose_two(site: Site) -> Value:
    """Two dims swapped."""
    x = site.value("self")
    a, b = (
        site.axis(site.get(name, site.get(other)), rank_of(x)) for name, other in (("dim0", "axis0"), ("dim1", "axis1"))
    )
    return swap(site, x, a, b) if rank_of(x) else x


@converts("t", "numpy_T", "mT", "mH", "matrix_H", "adjoint")
def transposed(site: Site) -> Value:
    """A matrix transposed: the last two dims of several, all dims for numpy's T."""
    x = site.value("self")
    rank = rank_of(x)
    if site.operator.startswith("aten.numpy_T"):
        return transpose(site, x, tuple(reversed(range(rank))))
    return x if rank < 2 else swap(site, x, rank - 2, rank - 1)


@converts("movedim.int", "movedim.intlist", "moveaxis.int", "moveaxis.intlist")
def move_dims(site: Site) -> Value:
    """Some dims put at other places, the others in their order."""
    x = site.value("self")
    rank = rank_of(x)
    sources, targets = (
        [site.axis(a, rank) for a in (found if isinstance(found, list) else [found])]
        for found in (site["source"], site["destination"])
    )
    order = [-1] * rank
    for source, target in zip(sources, targets, strict=True):
        order[target] = source
    rest = iter(axis for axis in range(rank) if axis not in sources)
    return transpose(site, x, [next(rest) if axis == -1 else axis for axis in order])


@converts("expand", "broadcast_to", "expand_copy")
def expand_sizes(site: Site) -> Value:
    """Repeated along dims of size 1 and new ones; -1 keeps a size."""
    x, sizes = site.value("self"), list(site["size"])
    missing = len(sizes) - rank_of(x)
    own = _sizes(site, x, 0, rank_of(x))
    wanted = [own[i - missing] if isinstance(size, int) and size == -1 else size for i, size in enumerate(sizes)]
    return expand(site, x, vector(site, wanted))


@converts("expand_as")
def expand_as(site: Site) -> Value:
    """Repeated to the sizes of another tensor."""
    return expand(site, site.value("self"), shape_of(site, site.value("other")))


@converts("broadcast_tensors")
def broadcast_tensors(site: Site) -> list[Value]:
    """Every tensor repeated to the sizes that all have together."""
    return broadcast_together(site, site["tensors"])


def broadcast_together(site: Site, tensors: Sequence[Value]) -> list[Value]:
    """Values repeated to the sizes that all have together."""
    shapes = [shape_of(site, value) for value in tensors]
    results = []
    for value in tensors:
        result = value
        for shape in shapes:
            result = expand(site, result, shape)
        results.append(result)
    return results


@converts("repeat", "tile")
def repeat(site: Site) -> Value:
    """The whole repeated along each dim."""
    x = site.value("self")
    repeats = list(site.get("repeats", site.get("dims")) or [])
    missing = len(repeats) - rank_of(x)
    repeats = [1] * max(-missing, 0) + repeats
    x = unsqueeze(site, x, tuple(range(max(missing, 0))))
    return site.op(Tile, x, vector(site, repeats)) if repeats else x


@converts("repeat_interleave.self_int")
def repeat_interleave(site: Site) -> Value:
    """Each element along a dim repeated in place."""
    x = site.value("self")
    times = site.integer(site["repeats"])
    if site.get("dim") is None:
        x, axis = flat(site, x), 0
    else:
        axis = site.axis(site["dim"], rank_of(x))
    wide = unsqueeze(site, x, (axis + 1,))
    repeats = [1] * rank_of(wide)
    repeats[axis + 1] = times
    return _merged(site, site.op(Tile, wide, site.integers(*repeats)), axis, axis + 1)


@converts("cat", "concat", "concatenate")
def cat(site: Site) -> Value:
    """Tensors one after the other; a vector without elements joins anything."""
    element = site.element()
    found = [cast(site, value, element) for value in site["tensors"]]
    kept = [value for value in found if value.tensor.dims != (0,)] or found[:1]
    return concat(site, kept, site.axis(site["dim"], rank_of(kept[0])))


@converts("stack")
def stack(site: Site) -> Value:
    """Tensors one after the other along a new dim."""
    element = site.element()
    found = [cast(site, value, element) for value in site["tensors"]]
    axis = site["dim"] % (rank_of(found[0]) + 1)
    return concat(site, [unsqueeze(site, value, (axis,)) for value in found], axis)


def pieces(site: Site, x: Value, axis: int, bounds: Sequence[Any]) -> list[Value]:
    """The tensor cut at these places along an axis."""
    edges = [0, *bounds, FAR]
    return [cut(site, x, axis, start, end) for start, end in pairwise(edges)]


@converts("split_with_sizes", "split.sizes", "split_with_sizes_copy")
def split_with_sizes(site: Site) -> list[Value]:
    """Pieces of these sizes."""
    x = site.value("self")
    axis, bounds, place = site.axis(site["dim"], rank_of(x)), [], 0
    for size in site.get("split_sizes", site.get("split_size"))[:-1]:
        place += site.integer(size)
        bounds.append(place)
    return pieces(site, x, axis, bounds)


@converts("split.Tensor")
def split(site: Site) -> list[Value]:
    """Pieces of one size, the last one perhaps smaller."""
    x = site.value("self")
    axis, size = site.axis(site["dim"], rank_of(x)), site.integer(site["split_size"])
    count = len(site.result)
    return pieces(site, x, axis, [size * index for index in range(1, count)])


@converts("chunk", "unsafe_chunk")
def chunk(site: Site) -> list[Value]:
    """So many pieces of equal size, the last ones perhaps smaller or absent."""
    x = site.value("self")
    axis = site.axis(site["dim"], rank_of(x))
    total, wanted = site.size(x, axis), site["chunks"]
    size = -(-total // wanted)
    if size == 0:
        return [x] * wanted
    return pieces(site, x, axis, range(size, total, size))


@converts("tensor_split.sections", "tensor_split.indices")
def tensor_split(site: Site) -> list[Value]:
    """So many pieces, the first ones perhaps greater by 1; or cut at these places."""
    x = site.value("self")
    axis = site.axis(site["dim"], rank_of(x))
    if "indices" in site.arguments:
        size = site.size(x, axis)
        edges = [0, *[min(max(i + size if i < 0 else i, 0), size) for i in map(site.integer, site["indices"])], size]
        return [cut(site, x, axis, start, max(start, end)) for start, end in pairwise(edges)]
    total, count = site.size(x, axis), site.integer(site["sections"])
    small, extra = divmod(total, count)
    edges = [small * i + min(i, extra) for i in range(1, count)]
    return pieces(site, x, axis, edges)


@converts("unbind.int")
def unbind(site: Site) -> list[Value]:
    """Every slice along a dim."""
    x = site.value("self")
    axis = site.axis(site["dim"], rank_of(x))
    return [pick(site, x, axis, index) for index in range(site.size(x, axis))]


@converts("select.int", "select_copy.int")
def select(site: Site) -> Value:
    """One slice along a dim."""
    x = site.value("self")
    return pick(site, x, site.axis(site["dim"], rank_of(x)), site["index"])


@converts("slice.Tensor", "slice_copy.Tensor")
def slice_tensor(site: Site) -> Value:
    """Python's slice along one dim."""
    x = site.value("self")
    start, end = site.get("start", 0), site.get("end", FAR)
    return cut(site, x, site.axis(site["dim"], rank_of(x)), start, end, site.integer(site["step"]))


@converts("narrow", "narrow.Tensor")
def narrow(site: Site) -> Value:
    """So many elements along a dim from a place on."""
    x, start, length = site.value("self"), site["start"], site["length"]
    axis = site.axis(site["dim"], rank_of(x))
    if isinstance(start, int) and start < 0:
        start += site.size(x, axis)
    if isinstance(start, int) and isinstance(length, int):
        return cut(site, x, axis, start, start + length)
    end = site.op(Add, operand(site, start, I64), operand(site, length, I64))
    return cut(site, x, axis, start, end)


@converts("flip", "fliplr", "flipud")
def flip(site: Site) -> Value:
    """The order along some dims turned round."""
    x = site.value("self")
    default = [1] if site.operator.startswith("aten.fliplr") else [0]
    axes = tuple(site.axis(axis, rank_of(x)) for axis in site.get("dims", default))
    return site.op(Reverse, x, axes=axes) if axes and rank_of(x) else x


@converts("roll")
def roll(site: Site) -> Value:
    """Elements moved along dims, those pushed out put in at the front; along the flattened tensor without dims."""
    x, shifts, dims = site.value("self"), site["shifts"], site["dims"]
    result = x if dims else flat(site, x)
    for shift, dim in zip(shifts, dims or [0], strict=False):
        axis = site.axis(dim, rank_of(result))
        size = site.size(result, axis)
        if size and site.integer(shift) % size:
            at = size - site.integer(shift) % size
            result = concat(site, [cut(site, result, axis, at), cut(site, result, axis, 0, at)], axis)
    return result if dims else reshape(site, result, _sizes(site, x, 0, rank_of(x)))


@converts("rot90")
def rot90(site: Site) -> Value:
    """Turned by quarter turns in the plane of two dims."""
    x = site.value("self")
    a, b = (site.axis(axis, rank_of(x)) for axis in site["dims"])
    turns = site["k"] % 4
    if turns == 2:
        return site.op(Reverse, x, axes=(a, b))
    if turns == 1:
        return swap(site, site.op(Reverse, x, axes=(b,)), a, b)
    return site.op(Reverse, swap(site, x, a, b), axes=(b,)) if turns == 3 else x


def diagonal_of(site: Site, x: Value, offset: int, dim1: int, dim2: int) -> Value:
    """The diagonal of the matrices in two dims, as the last dim of the result."""
    rank = rank_of(x)
    order = [axis for axis in range(rank) if axis not in (dim1, dim2)] + [dim1, dim2]
    x = transpose(site, x, order)
    rows, columns = site.size(x, rank - 2), site.size(x, rank - 1)
    top, left = max(-offset, 0), max(offset, 0)
    length = max(min(rows - top, columns - left), 0)
    merged = _merged(site, x, rank - 2, rank - 1)
    places = [(top + i) * columns + left + i for i in range(length)]
    return site.op(Gather, merged, site.integers(*places), axis=rank - 2)


@converts("diagonal", "diagonal_copy", "linalg_diagonal")
def diagonal(site: Site) -> Value:
    """A diagonal of matrices."""
    x = site.value("self" if "self" in site.arguments else "A")
    return diagonal_of(
        site, x, site["offset"], site.axis(site["dim1"], rank_of(x)), site.axis(site["dim2"], rank_of(x))
    )


@converts("diag_embed")
def diag_embed(site: Site) -> Value:
    """Vectors as diagonals of matrices in two new dims."""
    return embedded(site, site.value("self"), site["offset"], site["dim1"], site["dim2"])


def embedded(site: Site, x: Value, offset: int, dim1: int, dim2: int) -> Value:
    """The last dim as a diagonal of matrices that are 0 elsewhere."""
    import numpy as np

    from compiler.ops.compare import Select

    rank, size = rank_of(x) + 1, site.size(x, rank_of(x) - 1)
    side = size + abs(offset)
    rows, columns = np.indices((side, side))
    column = unsqueeze(site, x, (rank - 2,))
    places = np.clip(np.minimum(np.arange(side) - max(offset, 0), size - 1), 0, None)
    spread = site.op(Gather, column, site.integers(*places.tolist()), axis=rank - 1) if size else column
    here = site.b.constant(columns - rows == offset)
    result = site.op(Select, here, spread, number(site, 0, x.tensor.element))
    order = list(range(rank - 2))
    for target, source in sorted([(dim1 % rank, rank - 2), (dim2 % rank, rank - 1)]):
        order.insert(target, source)
    return transpose(site, result, order)


@converts("diag")
def diag(site: Site) -> Value:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    x = site.value("self")
    return (
        diagonal_of(site, x, site["diagonal"], 0, 1) if rank_of(x) == 2 else embedded(site, x, site["diagonal"], 0, 1)
    )


def _triangle(upper: bool) -> Converter:
    return lambda site: site.op(Trilu, site.value("self"), site.constant(site["diagonal"], I64), upper=upper)


converts("triu")(_triangle(True))
converts("tril")(_triangle(False))


@converts("as_strided", "as_strided_copy")
def as_strided(site: Site) -> Value:
    """Elements of the flattened tensor at the places that strides give; right for tensors that lie in order."""
    x = site.value("self")
    fake = site.fakes["self"]
    whole = fake.untyped_storage().nbytes() == fake.numel() * fake.element_size()
    if not fake.is_contiguous() or not whole:
        site.refuse("a tensor whose elements do not lie in order, or within a greater one")
    start = (site.get("storage_offset", fake.storage_offset())) - fake.storage_offset()
    places: Value = site.constant(start, I64)
    sizes, strides = list(site["size"]), list(site["stride"])
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        steps = site.op(Range, site.constant(0, I64), operand(site, size, I64), site.constant(1, I64))
        steps = site.op(Mul, steps, operand(site, stride, I64))
        steps = unsqueeze(site, steps, tuple(range(1, len(sizes) - axis)))
        places = site.op(Add, places, steps)
    return site.op(Gather, flat(site, x), places, axis=0)


@converts("resize", "resize_as")
def resize(site: Site) -> Value:
    """The first elements in another shape; what torch leaves unwritten is 0."""
    x = site.value("self")
    other = site.get("the_template")
    sizes = [site.integer(size) for size in site["size"]] if other is None else list(site.sizes(other))
    line, wanted, held = flat(site, x), math.prod(sizes), x.tensor.size
    if wanted > held:
        line = concat(site, [line, site.constant(np.zeros(wanted - held), x.tensor.element)], 0)
    return reshape(site, cut(site, line, 0, 0, wanted), sizes)


@converts("meshgrid", "meshgrid.indexing")
def meshgrid(site: Site) -> list[Value]:
    """Each vector along a dim of its own, repeated along those of the others."""
    vectors = [flat(site, value) for value in site["tensors"]]
    shape = concat(site, [shape_of(site, value) for value in vectors], 0)
    shape = site.folded(shape)
    results = []
    for axis, value in enumerate(vectors):
        others = tuple(i for i in range(len(vectors)) if i != axis)
        results.append(expand(site, unsqueeze(site, value, others), shape))
    if site.get("indexing") == "xy" and len(results) > 1:
        return [swap(site, value, 0, 1) for value in results]
    return results


@converts("unfold")
def unfold(site: Site) -> Value:
    """Windows along one dim, each as a new last dim."""
    import numpy as np

    x = site.value("self")
    rank = rank_of(x)
    size, step = site["size"], site["step"]
    if rank == 0:
        return expand(site, reshape(site, x, [1]), site.integers(size))
    axis = site.axis(site["dimension"], rank)
    count = (site.size(x, axis) - size) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(size)
    found = site.op(Gather, x, site.b.constant(places.astype(np.int64)), axis=axis)
    order = [*range(axis + 1), *range(axis + 2, rank + 1), axis + 1]
    return transpose(site, found, order)


@converts("pixel_shuffle", "pixel_unshuffle")
def pixel_shuffle(site: Site) -> Value:
    """Channels to places within blocks, or back."""
    x = site.value("self")
    lead = rank_of(x) - 3
    channels, height, width = (site.size(x, lead + i) for i in range(3))
    front, own = _sizes(site, x, 0, lead), list(range(lead))
    if "upscale_factor" in site.arguments:
        r = site["upscale_factor"]
        split_up = reshape(site, x, [*front, channels // (r * r), r, r, height, width])
        moved = transpose(site, split_up, [*own, *(lead + i for i in (0, 3, 1, 4, 2))])
        return reshape(site, moved, [*front, channels // (r * r), height * r, width * r])
    r = site["downscale_factor"]
    split_up = reshape(site, x, [*front, channels, height // r, r, width // r, r])
    moved = transpose(site, split_up, [*own, *(lead + i for i in (0, 2, 4, 1, 3))])
    return reshape(site, moved, [*front, channels * r * r, height // r, width // r])


@converts("channel_shuffle")
def channel_shuffle(site: Site) -> Value:
    """Channels of groups interleaved."""
    x = site.value("self")
    groups, channels = site["groups"], site.size(x, 1)
    rest = _sizes(site, x, 2, rank_of(x))
    batch = _sizes(site, x, 0, 1)
    split_up = reshape(site, x, [*batch, groups, channels // groups, *rest])
    return reshape(site, swap(site, split_up, 1, 2), [*batch, channels, *rest])
