"""Elements moved: shapes, orders, joins and cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.frontends.assembly import (
    FAR,
    concat,
    reshape,
    reshape_to,
    squeeze,
    transpose,
    unsqueeze,
)
from compiler.frontends.tensorflow.converters.common import axes_of, axis_of
from compiler.frontends.tensorflow.site import Results, Site, converts
from compiler.ir import I64, Value
from compiler.ops.compare import Lt, Select
from compiler.ops.elementwise import Add
from compiler.ops.indexing import Gather, ReverseSequence, ScatterElements
from compiler.ops.movement import BroadcastTo, Concat, Reverse, Slice, Split, Tile, Transpose
from compiler.ops.padding import Pad
from compiler.ops.reshape import DepthToSpace, SpaceToDepth

if TYPE_CHECKING:
    from collections.abc import Sequence


@converts("Reshape")
def reshaped(site: Site) -> Value:
    """To other sizes, one of which may be -1."""
    x = site.value(0)
    known = site.known(site.value(1))
    if known is not None:
        return reshape(site, x, [int(size) for size in known.reshape(-1)])
    return reshape_to(site, x, site.shape(1))


@converts("Transpose", "ConjugateTranspose")
def transposed(site: Site) -> Value:
    """Dims in another order."""
    x = site.value(0)
    if site.operator == "ConjugateTranspose" and x.tensor.element.kind.value == "complex":
        site.refuse("complex numbers")
    rank = site.rank(x)
    return transpose(site, x, [axis_of(site, axis, rank) for axis in site.ints(1, "the order of the dims")])


@converts("InvertPermutation")
def invert_permutation(site: Site) -> Value:
    """y[x[i]] = i."""
    x = site.value(0)
    known = site.known(x)
    if known is not None:
        return site.b.constant(np.argsort(known).astype(known.dtype))
    count = site.constant(np.arange(site.size(x, 0)), x.tensor.element)
    return site.op(ScatterElements, x, x, count, axis=0)


@converts("ExpandDims")
def expand_dims(site: Site) -> Value:
    """A dim of size 1 put in."""
    x = site.value(0)
    return unsqueeze(site, x, (axis_of(site, site.whole(1, "the axis"), site.rank(x) + 1),))


@converts("Squeeze")
def squeezed(site: Site) -> Value:
    """Dims of size 1 taken out: those named, else all."""
    x = site.value(0)
    axes = axes_of(site, site.numbers("squeeze_dims"), site.rank(x))
    if not axes:
        axes = tuple(axis for axis, size in enumerate(site.sizes(x)) if size == 1)
    return squeeze(site, x, axes)


def _joined(site: Site, values: Sequence[Value], axis: int) -> Value:
    if len(values) > 1 and all(site.known(value) is not None for value in values):
        return site.folded(site.op(Concat, *values, axis=axis))
    return concat(site, values, axis)


@converts("ConcatV2")
def concat_last(site: Site) -> Value:
    """The axis is the last input."""
    values = site.values
    rank = site.rank(values[0])
    return _joined(site, values[:-1], axis_of(site, site.whole(len(values) - 1, "the axis"), rank))


@converts("Concat")
def concat_first(site: Site) -> Value:
    """The axis is the first input."""
    values = site.values
    return _joined(site, values[1:], axis_of(site, site.whole(0, "the axis"), site.rank(values[1])))


@converts("ParallelConcat")
def parallel_concat(site: Site) -> Value:
    """Along the first dim."""
    return concat(site, site.values, 0)


@converts("ConcatOffset")
def concat_offset(site: Site) -> Results:
    """Where each of the shapes starts in their concatenation."""
    axis = site.whole(0, "the axis")
    start = 0
    results = []
    for index in range(1, len(site.inputs)):
        sizes = site.ints(index, "a shape")
        place = np.zeros(len(sizes), np.int64)
        place[axis] = start
        start += sizes[axis]
        results.append(site.constant(place, site.element(index - 1)))
    return results


@converts("Pack")
def pack(site: Site) -> Value:
    """Tensors of one shape along a new dim."""
    values = site.values
    axis = axis_of(site, int(site.attr("axis")), site.rank(values[0]) + 1)
    return _joined(site, [site.folded(unsqueeze(site, value, (axis,))) for value in values], axis)


@converts("Unpack")
def unpack(site: Site) -> Results:
    """The slices along a dim, without it."""
    x, count = site.value(0), int(site.attr("num"))
    axis = axis_of(site, int(site.attr("axis")), site.rank(x))
    if count == 0:
        return []
    parts = site.b.op(Split, [x, None], axis=axis, outputs=count).results if count > 1 else (x,)
    return [squeeze(site, part, (axis,)) for part in parts]


@converts("Split")
def split(site: Site) -> Results:
    """Parts of equal size; the axis comes first."""
    x = site.value(1)
    axis = axis_of(site, site.whole(0, "the axis"), site.rank(x))
    count = int(site.attr("num_split"))
    return x if count == 1 else site.b.op(Split, [x, None], axis=axis, outputs=count)


@converts("SplitV")
def split_sizes(site: Site) -> Results:
    """Parts of given sizes, one of which may be -1."""
    x = site.value(0)
    axis = axis_of(site, site.whole(2, "the axis"), site.rank(x))
    sizes = site.ints(1, "the sizes of the parts")
    if -1 in sizes:
        rest = site.size(x, axis) - sum(size for size in sizes if size != -1)
        sizes = [rest if size == -1 else size for size in sizes]
    return site.b.op(Split, [x, site.integers(*sizes)], axis=axis, outputs=len(sizes))


@converts("Slice")
def sliced(site: Site) -> Value:
    """Sizes from a first element on; -1 is to the end."""
    x = site.value(0)
    begin, size = (site.known(site.value(index)) for index in (1, 2))
    axes = site.integers(*range(site.rank(x)))
    if begin is not None and size is not None:
        ends = [
            FAR if count == -1 else start + count for start, count in zip(begin.tolist(), size.tolist(), strict=True)
        ]
        return site.op(Slice, x, site.integers(*begin.tolist()), site.integers(*ends), axes, None)
    first, count = site.shape(1), site.shape(2)
    end = site.op(Add, first, count)
    if size is None or (size < 0).any():
        end = site.op(Select, site.op(Lt, count, site.constant(0, I64)), site.constant(FAR, I64), end)
    return site.op(Slice, x, first, end, axes, None)


@converts("Tile")
def tile(site: Site) -> Value:
    """Repeated along each dim."""
    return site.op(Tile, site.value(0), site.shape(1))


@converts("BroadcastTo")
def broadcast_to(site: Site) -> Value:
    """Repeated to a shape."""
    return site.op(BroadcastTo, site.value(0), site.shape(1))


def _pads(site: Site, index: int) -> Value:
    """[rank, 2] -> all before, then all after."""
    known = site.known(site.value(index))
    if known is not None:
        return site.integers(*known.T.reshape(-1).tolist())
    return reshape(site, site.op(Transpose, site.shape(index), permutation=(1, 0)), [-1])


@converts("Pad")
def pad(site: Site) -> Value:
    """Zeros around."""
    return site.op(Pad, site.value(0), _pads(site, 1), None, None)


@converts("PadV2")
def pad_with(site: Site) -> Value:
    """A number around."""
    return site.op(Pad, site.value(0), _pads(site, 1), site.value(2), None)


@converts("MirrorPad")
def mirror_pad(site: Site) -> Value:
    """The elements mirrored around: without the outer one (REFLECT), or with it (SYMMETRIC)."""
    return mirrored(site, site.value(0), 1)


def mirrored(site: Site, x: Value, index: int) -> Value:
    """Padded by input ``index`` as the node's mode says."""
    if site.attr("mode") == "REFLECT":
        return site.op(Pad, x, _pads(site, index), None, None, mode="reflect")
    amounts = site.data(index, "the padding")
    for axis, (before, after) in enumerate(amounts.tolist()):
        if before or after:
            places = np.pad(np.arange(site.size(x, axis)), (before, after), mode="symmetric")
            x = site.op(Gather, x, site.integers(*places.tolist()), axis=axis)
    return x


@converts("Reverse")
def reverse_flags(site: Site) -> Value:
    """The dims whose flags are set turned round."""
    axes = tuple(int(axis) for axis in np.flatnonzero(site.data(1, "the choice of dims")))
    return site.op(Reverse, site.value(0), axes=axes) if axes else site.value(0)


@converts("ReverseV2")
def reverse(site: Site) -> Value:
    """Some dims turned round."""
    x = site.value(0)
    axes = axes_of(site, site.ints(1, "the choice of dims"), site.rank(x))
    return site.op(Reverse, x, axes=axes) if axes else x


@converts("ReverseSequence")
def reverse_sequence(site: Site) -> Value:
    """The first elements of each batch entry turned round."""
    x, rank = site.value(0), site.rank(site.value(0))
    return site.op(
        ReverseSequence,
        x,
        site.value(1),
        batch_axis=axis_of(site, int(site.attr("batch_dim")), rank),
        time_axis=axis_of(site, int(site.attr("seq_dim")), rank),
    )


@converts("Roll")
def roll(site: Site) -> Value:
    """Dims turned by a number of places; an axis may come several times."""
    x = site.value(0)
    shifts, axes = site.ints(1, "the shift"), site.ints(2, "the axis")
    for shift, named in zip(shifts, axes, strict=True):
        axis = axis_of(site, named, site.rank(x))
        size = site.size(x, axis)
        if size and shift % size:
            order = np.roll(np.arange(size), shift)
            x = site.op(Gather, x, site.integers(*order.tolist()), axis=axis)
    return x


@converts("SpaceToDepth", "DepthToSpace")
def space_and_depth(site: Site) -> Value:
    """Blocks of space as channels, and back; a block's place comes before the channel."""
    from compiler.frontends.tensorflow.converters.common import as_images

    size = int(site.attr("block_size"))
    definition = SpaceToDepth if site.operator == "SpaceToDepth" else DepthToSpace
    return as_images(site, site.value(0), lambda x: site.op(definition, x, block_size=size))


@converts("SpaceToBatchND", "SpaceToBatch")
def space_to_batch(site: Site) -> Value:
    """Blocks of padded space as batch entries; a block's place comes before the entry."""
    plain = site.operator == "SpaceToBatch"
    blocks = [int(site.attr("block_size"))] * 2 if plain else site.ints(1, "the block")
    amounts = site.data(1 if plain else 2, "the padding")
    x, count = site.value(0), len(blocks)
    rank = site.rank(x)
    outer = [[0, 0], *amounts.tolist(), *[[0, 0]] * (rank - count - 1)]
    x = site.op(Pad, x, site.integers(*np.array(outer).T.reshape(-1).tolist()), None, None)
    spatial = [site.size(x, axis) for axis in range(1, count + 1)]
    rest = _rest(site, x, count)
    parts = [part for size, block in zip(spatial, blocks, strict=True) for part in (size // block, block)]
    x = reshape(site, x, [_batch(site, x, 1), *parts, *rest])
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, 2 * count + 1 + len(rest))]
    x = transpose(site, x, order)
    return reshape(site, x, [-1, *(size // block for size, block in zip(spatial, blocks, strict=True)), *rest])


def _batch(site: Site, x: Value, divisor: int) -> int:
    size = site.dims(x)[0]
    return size // divisor if isinstance(size, int) else -1


def _rest(site: Site, x: Value, count: int) -> list[int]:
    return [site.size(x, axis) for axis in range(count + 1, site.rank(x))]


@converts("BatchToSpaceND", "BatchToSpace")
def batch_to_space(site: Site) -> Value:
    """The other way, and then cut."""
    plain = site.operator == "BatchToSpace"
    blocks = [int(site.attr("block_size"))] * 2 if plain else site.ints(1, "the block")
    cuts = site.data(1 if plain else 2, "the crop").tolist()
    x, count = site.value(0), len(blocks)
    spatial = [site.size(x, axis) for axis in range(1, count + 1)]
    rest = _rest(site, x, count)
    x = reshape(site, x, [*blocks, _batch(site, x, int(np.prod(blocks))), *spatial, *rest])
    pairs = [axis for i in range(count) for axis in (count + 1 + i, i)]
    x = transpose(site, x, [count, *pairs, *range(2 * count + 1, 2 * count + 1 + len(rest))])
    whole = [size * block for size, block in zip(spatial, blocks, strict=True)]
    x = reshape(site, x, [-1 if not x.tensor.is_static else x.tensor.shape[0], *whole, *rest])
    starts = [before for before, _ in cuts]
    ends = [size - after for size, (_, after) in zip(whole, cuts, strict=True)]
    return site.op(Slice, x, site.integers(*starts), site.integers(*ends), site.integers(*range(1, count + 1)), None)


@converts("DataFormatVecPermute", "DataFormatDimMap")
def data_format(site: Site) -> Value:
    """Entries a dim, or numbers of dims, from one layout to another."""
    source, target = site.attr("src_format"), site.attr("dst_format")
    x = site.value(0)
    if site.operator == "DataFormatDimMap":
        table = site.constant([target.index(name) for name in source], x.tensor.element)
        return site.op(Gather, table, x, axis=0)
    count = site.size(x, 0)
    if count == len(source) - 2:
        source, target = ("".join(name for name in layout if name not in "NC") for layout in (source, target))
    return site.op(Gather, x, site.integers(*(source.index(name) for name in target)), axis=0)
