"""Data movement: shapes, order, parts, padding."""

from __future__ import annotations

from compiler.frontends.onnx.converters.common import (
    as_int64,
    concat,
    matrix,
    reshape_like,
    shape_of,
    squeeze,
    unsqueeze,
)
from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ir import I64, Value
from compiler.ops.compare import Eq, Select
from compiler.ops.movement import BroadcastTo, Concat, Slice, Split, Tile, Transpose
from compiler.ops.padding import Trilu
from compiler.ops.reshape import DepthToSpace, Reshape, SpaceToDepth, Squeeze, Unsqueeze


@converts("Identity")
def identity(site: Site) -> Value:
    """The input itself."""
    return site.input(0)


@converts("Reshape", until=4)
def reshape_by_attribute(site: Site) -> Value:
    """The first version has the shape as an attribute; 0 copies a size."""
    shape = site.attribute("shape")
    if shape is None:
        site.bad_attribute("attribute 'shape' is missing")
    return _reshaped(site, site.integers(*shape), zero_copies=True)


@converts("Reshape", since=5)
def reshape(site: Site) -> Value:
    """The shape is an input; 0 copies a size unless ``allowzero`` is set."""
    return _reshaped(site, as_int64(site, site.input(1)), zero_copies=not site.attribute("allowzero"))


def _reshaped(site: Site, shape: Value, *, zero_copies: bool) -> Value:
    x = site.input(0)
    sizes = site.known(shape)
    if sizes is not None:
        if (sizes < -1).any() or (sizes == -1).sum() > 1:
            site.invalid(f"shape {sizes.tolist()} has a size below -1, or -1 twice")
        if not zero_copies and (sizes == -1).any() and (sizes == 0).any():
            site.invalid(f"shape {sizes.tolist()} has both 0 and -1, and 'allowzero' is set")
    if not zero_copies or (sizes is not None and (sizes != 0).all()):
        return site.b(Reshape, x, shape)
    rank = site.rank(x)
    if sizes is not None:
        return site.b(Reshape, x, _known_zeros(site, x, [int(size) for size in sizes], rank))
    if shape.tensor.dims is not None and len(shape.tensor.dims) != 1:
        site.invalid(f"shape is {shape.type}; expected a vector")
    (count,) = shape.tensor.known_dims
    if not isinstance(count, int):
        site.undecided("the rank of the result is unknown")
    own = shape_of(site, x, 0, min(count, rank))
    if count > rank:
        own = concat(site, [own, site.integers(*[0] * (count - rank))])
    zero = site.b(Eq, shape, site.integers(0))
    return site.b(Reshape, x, site.folded(site.b(Select, zero, own, shape)))


def _known_zeros(site: Site, x: Value, sizes: list[int], rank: int) -> Value:
    """The sizes with each 0 replaced by that of x, which may be symbolic."""
    parts: list[Value] = []
    for position, size in enumerate(sizes):
        if size:
            parts.append(site.integers(size))
            continue
        if position >= rank:
            site.invalid(f"shape {sizes} copies size {position} of an input of rank {rank}")
        parts.append(shape_of(site, x, position, position + 1))
    return site.folded(concat(site, parts))


@converts("Flatten")
def flatten(site: Site) -> Value:
    """A matrix: dims before ``axis`` are the rows."""
    rank = site.rank(site.input(0))
    axis = site.attribute("axis")
    if axis < 0 and site.version < 11:
        site.bad_attribute(f"attribute 'axis' is {axis}; it counts from the end only since version 11")
    if not -rank <= axis <= rank:
        site.bad_attribute(f"attribute 'axis' is {axis}; expected {-rank} to {rank}")
    return matrix(site, site.input(0), axis if axis >= 0 else axis + rank)


@converts("Transpose")
def transpose(site: Site) -> Value:
    """By default all dims in reverse order."""
    x, order = site.input(0), site.attribute("perm")
    rank = site.rank(x) if order is None or x.tensor.dims is not None else len(order)
    order = tuple(reversed(range(rank))) if order is None else order
    if sorted(order) != list(range(rank)):
        site.bad_attribute(f"attribute 'perm' is {list(order)}; expected an order of {rank} dims")
    return site.b(Transpose, x, permutation=tuple(order))


@converts("Expand")
def expand(site: Site) -> Value:
    """Broadcast x against a shape; either may have dims of size 1."""
    return site.b(BroadcastTo, site.input(0), as_int64(site, site.input(1)))


@converts("Squeeze", until=12)
def squeeze_by_attribute(site: Site) -> Value:
    """Axes are an attribute; none means all dims of size 1."""
    return _squeezed(site, site.attribute("axes"))


@converts("Squeeze", since=13)
def squeeze_by_input(site: Site) -> Value:
    """Axes are an optional input."""
    if not site.has(1):
        return _squeezed(site, None)
    return site.b(Squeeze, site.input(0), as_int64(site, site.input(1)))


def _squeezed(site: Site, axes: tuple[int, ...] | None) -> Value:
    x = site.input(0)
    rank = site.rank(x)
    if axes is None:
        dims = x.tensor.known_dims
        if not all(isinstance(dim, int) for dim in dims):
            return site.b(Squeeze, x)
        axes = tuple(position for position, dim in enumerate(dims) if dim == 1)
    return squeeze(site, x, site.axes(axes, rank))


@converts("Unsqueeze", until=12)
def unsqueeze_by_attribute(site: Site) -> Value:
    """Axes are an attribute; they count in the result."""
    axes = site.attribute("axes")
    return unsqueeze(site, site.input(0), site.axes(axes, site.rank(site.input(0)) + len(axes)))


@converts("Unsqueeze", since=13)
def unsqueeze_by_input(site: Site) -> Value:
    """Axes are an input."""
    return site.b(Unsqueeze, site.input(0), as_int64(site, site.input(1)))


@converts("Concat")
def concatenate(site: Site) -> Value:
    """Along ``axis``, which the first version sets to 1 where it is absent."""
    axis = site.attribute("axis")
    axis = 1 if axis is None else axis
    return site.b(Concat, *site.given, axis=site.axis_of(site.input(0), axis))


@converts("Split", until=12)
def split_by_attribute(site: Site) -> Results:
    """Sizes are an attribute; the first version takes them as an input too. Absent: equal parts."""
    sizes = site.attribute("split")
    if sizes is not None:
        return _split(site, site.integers(*sizes))
    return _split(site, as_int64(site, site.input(1)) if site.has(1) else None)


@converts("Split", since=13)
def split(site: Site) -> Results:
    """Sizes are an input; version 18 names the number of parts, of which the last may be smaller."""
    count = site.attribute("num_outputs")
    if count is not None and site.has(1):
        site.invalid("both 'split' and 'num_outputs' are given; expected one of them")
    if count is not None and count != len(site.outputs):
        site.bad_attribute(f"attribute 'num_outputs' is {count}, and there are {len(site.outputs)} outputs")
    return _split(site, as_int64(site, site.input(1)) if site.has(1) else None)


def _split(site: Site, sizes: Value | None) -> Results:
    x, parts = site.input(0), len(site.outputs)
    axis = site.axis_of(x, site.attribute("axis") or 0)
    size = None if x.tensor.dims is None else x.tensor.dims[axis]
    if sizes is None and site.version < 18 and isinstance(size, int) and size % parts:
        site.invalid(f"size {size} of axis {axis} is no multiple of {parts} outputs")
    return site.b.op(Split, [x, sizes], axis=axis, outputs=parts)


@converts("Slice", until=9)
def slice_by_attributes(site: Site) -> Value:
    """Starts, ends and axes are attributes."""
    starts, ends, axes = site.attribute("starts"), site.attribute("ends"), site.attribute("axes")
    axes = tuple(range(len(starts))) if axes is None else axes
    if not len(starts) == len(ends) == len(axes):
        site.invalid(f"{len(starts)} starts, {len(ends)} ends and {len(axes)} axes; expected equal numbers")
    steps = site.integers(*[1] * len(starts))
    return site.b(Slice, site.input(0), site.integers(*starts), site.integers(*ends), site.integers(*axes), steps)


@converts("Slice", since=10)
def slice_(site: Site) -> Value:
    """Starts, ends, axes and steps are inputs."""
    places = [as_int64(site, site.input(index)) for index in (1, 2)]
    options = [as_int64(site, site.input(index)) if site.has(index) else None for index in (3, 4)]
    return site.b(Slice, site.input(0), *places, *options)


@converts("Tile", until=5)
def tile_one_axis(site: Site) -> Value:
    """The first version repeats along one axis."""
    axis = site.needed_integer(2)
    rank = site.rank(site.input(0))
    axis = site.axis(axis, rank)
    count = as_int64(site, site.input(1))
    count = count if count.tensor.dims == (1,) else unsqueeze(site, count, (0,))
    ones = [site.integers(*[1] * axis), count, site.integers(*[1] * (rank - axis - 1))]
    return site.b(Tile, site.input(0), site.folded(concat(site, [part for part in ones if part.tensor.dims != (0,)])))


@converts("Tile", since=6)
def tile(site: Site) -> Value:
    """One count a dim."""
    return site.b(Tile, site.input(0), as_int64(site, site.input(1)))


@converts("DepthToSpace")
def depth_to_space(site: Site) -> Value:
    """Depth-column-row order, or column-row-depth since version 11."""
    mode = site.attribute("mode") or "DCR"
    if mode not in {"DCR", "CRD"}:
        site.bad_attribute(f"attribute 'mode' is '{mode}'; expected DCR or CRD")
    return site.b(DepthToSpace, site.input(0), block_size=site.attribute("blocksize"), mode=mode)


@converts("SpaceToDepth")
def space_to_depth(site: Site) -> Value:
    """Depth-column-row order, or column-row-depth since version 28."""
    x, block = site.input(0), site.attribute("blocksize")
    mode = site.attribute("mode") or "DCR"
    if mode == "DCR":
        return site.b(SpaceToDepth, x, block_size=block)
    if mode != "CRD":
        site.bad_attribute(f"attribute 'mode' is '{mode}'; expected DCR or CRD")
    moved = site.b(SpaceToDepth, x, block_size=block)
    _, channels, height, width = moved.tensor.known_dims
    if not isinstance(channels, int) or not isinstance(height, int) or not isinstance(width, int):
        site.undecided("order CRD needs the sizes")
    blocks = site.b(Reshape, moved, site.integers(-1, block * block, channels // (block * block), height, width))
    turned = site.b(Transpose, blocks, permutation=(0, 2, 1, 3, 4))
    return reshape_like(site, turned, moved)


@converts("Trilu")
def trilu(site: Site) -> Value:
    """The upper or lower triangle from diagonal k on."""
    k = as_int64(site, site.input(1)) if site.has(1) else site.scalar(0, I64)
    return site.b(Trilu, site.input(0), k, upper=bool(site.attribute("upper")))
