"""Strided slices with their five masks, read, written and turned round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.frontends.assembly import FAR, pick, reshape, squeeze, unsqueeze, vector
from compiler.frontends.tensorflow.site import Site, converts
from compiler.ir import Value
from compiler.ops.convert import Cast
from compiler.ops.indexing import ScatterElements
from compiler.ops.movement import Slice
from compiler.ops.shape import ShapeOf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array


@dataclass(slots=True)
class _Cut:
    """One dim of the sliced tensor: bounds (numbers or values), step, and whether it goes away."""

    axis: int
    start: Any = 0
    end: Any = FAR
    step: int = 1
    drop: bool = False

    @property
    def is_all(self) -> bool:
        return not self.drop and self.step == 1 and _is(self.start, 0) and isinstance(self.end, int) and self.end >= FAR


def _is(found: Any, number: int) -> bool:  # noqa: ANN401
    return isinstance(found, int) and found == number


@dataclass(slots=True)
class _Plan:
    """What the masks make of the entries: a cut a dim, and where dims of size 1 go in the result."""

    cuts: list[_Cut] = field(default_factory=list)
    new: list[int] = field(default_factory=list)
    """Places of new dims, among the dims of the result."""


def _plan(site: Site, rank: int, bounds: Sequence[int]) -> _Plan:
    """``bounds`` are the positions of the inputs begin, end and strides."""
    begin, end, strides = bounds
    steps = site.ints(strides, "the step")
    masks = {name: int(site.attr(f"{name}_mask")) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    first, last = _entries(site, begin, len(steps)), _entries(site, end, len(steps))
    named = sum(1 for i in range(len(steps)) if not (masks["new_axis"] | masks["ellipsis"]) >> i & 1)
    plan = _Plan()
    axis = place = 0
    for i, step in enumerate(steps):
        if masks["ellipsis"] >> i & 1:
            covered = rank - named
            axis, place = axis + covered, place + covered
        elif masks["new_axis"] >> i & 1:
            plan.new.append(place)
            place += 1
        elif masks["shrink_axis"] >> i & 1:
            plan.cuts.append(_Cut(axis, first[i], drop=True))
            axis += 1
        else:
            low, high = (0, FAR) if step > 0 else (FAR, -FAR)
            start = low if masks["begin"] >> i & 1 else first[i]
            stop = high if masks["end"] >> i & 1 else last[i]
            plan.cuts.append(_Cut(axis, start, stop, step))
            axis, place = axis + 1, place + 1
    return plan


def _entries(site: Site, index: int, count: int) -> list[Any]:
    """The bounds: numbers where they are known, else values of rank 0."""
    value = site.value(index)
    known = site.known(value)
    if known is not None:
        return [int(item) for item in known]
    parts = [pick(site, site.as_int64(value), 0, position) for position in range(count)]
    found = [(part, site.known(part)) for part in parts]
    return [part if data is None else int(data) for part, data in found]


@converts("StridedSlice")
def strided_slice(site: Site) -> Value:
    """``x[begin:end:strides]`` with masks for open bounds, the ellipsis, new dims and dropped ones."""
    x = site.value(0)
    plan = _plan(site, site.rank(x), (1, 2, 3))
    short = _of_shape(site, x, plan)
    x = short if short is not None else _cut(site, x, [cut for cut in plan.cuts if not cut.is_all])
    return site.folded(unsqueeze(site, x, tuple(plan.new))) if plan.new else x


def _of_shape(site: Site, x: Value, plan: _Plan) -> Value | None:
    """A slice of sizes, whose others need not be known."""
    maker = x.op
    if maker is None or not isinstance(maker.definition, Cast) or len(plan.cuts) != 1:
        return None
    source, cut = maker.operand(0).op, plan.cuts[0]
    if source is None or not isinstance(source.definition, ShapeOf) or cut.step != 1:
        return None
    if source.attributes.get("start", 0) != 0 or source.attributes.get("end") not in (
        None,
        x.tensor.dims and x.tensor.dims[0],
    ):
        return None
    if not isinstance(cut.start, int) or not isinstance(cut.end, int) or not x.tensor.is_static:
        return None
    count = x.tensor.shape[0]
    positions = range(count)[cut.start : cut.end] if not cut.drop else range(count)[cut.start % count :][:1]
    if not positions:
        return None
    sizes = site.op(ShapeOf, source.operand(0), start=positions[0], end=positions[-1] + 1)
    sizes = site.folded(site.op(Cast, sizes, to=x.tensor.element))
    return site.folded(squeeze(site, sizes, (0,))) if cut.drop else sizes


def _cut(site: Site, x: Value, cuts: Sequence[_Cut]) -> Value:
    picked = [cut for cut in cuts if cut.drop and isinstance(cut.start, Value)]
    rest = [cut for cut in cuts if cut not in picked]
    if rest:
        for cut in rest:
            if cut.drop:
                cut.end = FAR if cut.start == -1 else cut.start + 1
        bounds = [vector(site, [_bounded(getattr(cut, name)) for cut in rest]) for name in ("start", "end")]
        axes, steps = site.integers(*(cut.axis for cut in rest)), site.integers(*(cut.step for cut in rest))
        x = site.folded(site.op(Slice, x, *bounds, axes, steps))
    dropped = [cut.axis for cut in rest if cut.drop]
    for cut in reversed(picked):
        x = pick(site, x, cut.axis, cut.start)
        dropped = [axis - 1 if axis > cut.axis else axis for axis in dropped]
    return site.folded(squeeze(site, x, tuple(dropped))) if dropped else x


def _bounded(bound: Any) -> Any:  # noqa: ANN401 - a number or a value
    return max(min(bound, FAR), -FAR) if isinstance(bound, int) else bound


def _places(site: Site, shape: Sequence[int], bounds: Sequence[int]) -> Array:
    """The flat positions of what a slice of a tensor of this shape reads, in the shape of the slice."""
    plan = _plan(site, len(shape), bounds)
    index: list[Any] = [slice(None)] * len(shape)
    for cut in plan.cuts:
        if isinstance(cut.start, Value) or isinstance(cut.end, Value):
            site.undecided("the bounds of the slice decide where it writes, and are not known before it runs")
        far = None if abs(cut.end) >= FAR else cut.end
        start = None if abs(cut.start) >= FAR else cut.start
        index[cut.axis] = cut.start if cut.drop else slice(start, far, cut.step)
    found = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)[tuple(index)]
    for place in plan.new:
        found = np.expand_dims(found, place)
    return np.asarray(found)


def _written(site: Site, x: Value, update: Value, shape: Sequence[int], bounds: Sequence[int]) -> Value:
    from compiler.ops.movement import BroadcastTo

    places = _places(site, shape, bounds)
    flat = reshape(site, x, [int(np.prod(shape))])
    update = reshape(site, site.op(BroadcastTo, update, site.integers(*places.shape)), [places.size])
    written = site.op(ScatterElements, flat, site.b.constant(places.reshape(-1)), update, axis=0)
    return reshape(site, written, list(shape))


@converts("TensorStridedSliceUpdate")
def strided_slice_update(site: Site) -> Value:
    """A copy with a slice replaced."""
    x = site.value(0)
    return _written(site, x, site.value(4), site.sizes(x), (1, 2, 3))


@converts("StridedSliceGrad")
def strided_slice_grad(site: Site) -> Value:
    """Zeros of a shape with a slice set."""
    shape = site.ints(0, "the shape")
    update = site.value(4)
    zeros = site.constant(np.zeros(shape), update.tensor.element)
    return _written(site, zeros, update, shape, (1, 2, 3))
