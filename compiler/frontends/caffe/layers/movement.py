"""Layers that move data, and those that bring values in or end them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from compiler.frontends.caffe.site import Site, converts
from compiler.ir import Value
from compiler.ops.creation import Fill
from compiler.ops.movement import Concat, Tile, Transpose


@converts("Split")
def split(site: Site) -> Sequence[Value]:
    """The same value under several names."""
    return [site.inputs[0]] * len(site.layer.tops)


@converts("Silence", greatest=None)
def silence(_site: Site) -> Sequence[Value]:
    """Reads its bottoms so that they are no outputs of the network."""
    return ()


@converts("Parameter", least=0, greatest=0)
def parameter(site: Site) -> Value:
    """A learned blob as a value."""
    return site.weight(0, "parameter", tuple(site.parameters("parameter_param").shape.dim))


@converts("DummyData", least=0, greatest=0)
def dummy_data(site: Site) -> Sequence[Value]:
    """Tops filled with constants; other fillers draw random numbers."""
    found, count = site.parameters("dummy_data_param"), len(site.layer.tops)
    shapes = [tuple(shape.dim) for shape in found.shape]
    if not shapes:
        columns = (found.num, found.channels, found.height, found.width)
        shapes = [tuple(int(size) for size in dims) for dims in zip(*columns, strict=False)]
    fillers = list(found.data_filler)
    if len(shapes) not in {1, count} or len(fillers) not in {0, 1, count}:
        site.invalid(f"{len(shapes)} shapes and {len(fillers)} fillers; expected 1 or one for each of {count} tops")
    results = []
    for index in range(count):
        filler = fillers[index % len(fillers)] if fillers else None
        if filler is not None and filler.type != "constant":
            site.refuse(f"filler '{filler.type}' draws random numbers", "data_filler")
        value = 0.0 if filler is None else filler.value
        results.append(site.b(Fill, site.integers(*shapes[index % len(shapes)]), site.number(value)))
    return results


@converts("Concat", greatest=None)
def concat(site: Site) -> Value:
    """Bottoms one after the other along ``axis`` (or the older ``concat_dim``)."""
    found, dims = site.parameters("concat_param"), site.dims()
    axis = found.concat_dim if found.HasField("concat_dim") else found.axis
    axis = site.axis(int(axis), len(dims))
    for index in range(1, len(site.inputs)):
        other = site.dims(index)
        if other[:axis] != dims[:axis] or other[axis + 1 :] != dims[axis + 1 :]:
            site.invalid(f"bottom {index} has shape {list(other)}; expected {list(dims)} but along dim {axis}")
    return site.inputs[0] if len(site.inputs) == 1 else site.b(Concat, *site.inputs, axis=axis)


@converts("Slice")
def slice_(site: Site) -> Sequence[Value]:
    """Parts along ``axis`` (or the older ``slice_dim``), cut at the points given, else of equal size."""
    found, dims, count = site.parameters("slice_param"), site.dims(), len(site.layer.tops)
    axis = site.axis(int(found.slice_dim if found.HasField("slice_dim") else found.axis), len(dims))
    points = [int(point) for point in found.slice_point]
    if points and len(points) != count - 1:
        site.invalid(f"{len(points)} of slice_point; expected {count - 1} for {count} tops")
    if not points and (count == 0 or dims[axis] % count):
        site.invalid(f"dim {axis} of size {dims[axis]} cannot be cut into {count} equal parts")
    bounds = [0, *(points or range(dims[axis] // count, dims[axis], dims[axis] // count)), dims[axis]]
    if any(start >= end for start, end in pairwise(bounds)):
        site.invalid(f"slice_point is {points}; expected ascending points within dim {axis} of size {dims[axis]}")
    if count == 1:
        return [site.inputs[0]]
    return [site.cut(site.inputs[0], axis, start, end) for start, end in pairwise(bounds)]


@converts("Crop", least=2, greatest=2)
def crop(site: Site) -> Value:
    """Bottom 0 cut to the sizes of bottom 1 from ``axis`` on, after an offset for all or for each dim."""
    found, dims, wanted = site.parameters("crop_param"), site.dims(), site.dims(1)
    axis = site.axis(found.axis, len(dims))
    offsets = [int(offset) for offset in found.offset] or [0]
    if len(wanted) != len(dims) or len(offsets) not in {1, len(dims) - axis}:
        site.invalid(f"offset has {len(offsets)} entries, bottoms {len(dims)} and {len(wanted)} dims; they do not fit")
    value = site.inputs[0]
    for step, dim in enumerate(range(axis, len(dims))):
        start = offsets[step % len(offsets)]
        if start + wanted[dim] > dims[dim]:
            site.invalid(f"dim {dim} has size {dims[dim]}; cannot be cut to {wanted[dim]} after {start}")
        if (start, wanted[dim]) != (0, dims[dim]):
            value = site.cut(value, dim, start, start + wanted[dim])
    return value


@converts("Flatten")
def flatten(site: Site) -> Value:
    """Dims ``axis`` to ``end_axis`` as one."""
    found, dims = site.parameters("flatten_param"), site.dims()
    start, end = site.axis(found.axis, len(dims)), site.axis(found.end_axis, len(dims))
    if start > end:
        site.invalid(f"end_axis {found.end_axis} comes before axis {found.axis}")
    joined = int(np.prod(dims[start : end + 1], dtype=np.int64))
    return site.reshape(site.inputs[0], (*dims[:start], joined, *dims[end + 1 :]))


@converts("Reshape")
def reshape(site: Site) -> Value:
    """Dims ``axis`` to ``axis + num_axes`` replaced by others: 0 keeps the size in that place, -1 is what is left."""
    found, dims = site.parameters("reshape_param"), site.dims()
    wanted = [int(size) for size in found.shape.dim]
    start = found.axis if found.axis >= 0 else len(dims) + found.axis + 1
    end = len(dims) if found.num_axes == -1 else start + found.num_axes
    if not 0 <= start <= end <= len(dims):
        site.invalid(f"axis {found.axis} and num_axes {found.num_axes} go beyond the bottom's {len(dims)} dims")
    for index, size in enumerate(wanted):
        if size < -1 or (size == 0 and start + index >= len(dims)):
            site.invalid(f"dim {index} of the shape is {size}; expected a size, -1, or 0 where the bottom has a dim")
        if size == 0:
            wanted[index] = dims[start + index]
    result = [*dims[:start], *wanted, *dims[end:]]
    total, rest = int(np.prod(dims, dtype=np.int64)), int(np.prod([s for s in result if s != -1], dtype=np.int64))
    if result.count(-1) > 1 or total % rest or (-1 not in result and rest != total):
        site.invalid(f"shape {result} does not hold the bottom's {total} values, {list(dims)}")
    return site.reshape(site.inputs[0], [total // rest if size == -1 else size for size in result])


@converts("Tile")
def tile(site: Site) -> Value:
    """Copies one after the other along ``axis``."""
    found, rank = site.parameters("tile_param"), len(site.dims())
    if not found.HasField("tiles") or found.tiles < 1:
        site.invalid("tile_param has no positive tiles; expected the number of copies")
    repeats = [1] * rank
    repeats[site.axis(found.axis, rank)] = found.tiles
    return site.b(Tile, site.inputs[0], site.integers(*repeats))


@converts("Permute")
def permute(site: Site) -> Value:
    """Dims in another order; those that the order leaves out follow as they are (SSD)."""
    rank = len(site.dims())
    given = [int(axis) for axis in site.parameters("permute_param").order]
    if len(set(given)) != len(given) or any(axis >= rank for axis in given):
        site.invalid(f"order is {given}; expected different dims of 0 to {rank - 1}")
    order = (*given, *(axis for axis in range(rank) if axis not in given))
    if order == tuple(range(rank)):
        return site.inputs[0]
    return site.b(Transpose, site.inputs[0], permutation=order)
