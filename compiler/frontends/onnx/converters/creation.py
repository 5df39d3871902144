"""Values made from attributes, shapes or nothing: Constant, ConstantOfShape, Range, Shape, Size, EyeLike."""

from __future__ import annotations

from typing import Final

import numpy as np

from compiler.frontends.onnx.converters.common import as_int64, squeeze
from compiler.frontends.onnx.site import Site, converts
from compiler.ir import Value
from compiler.onnx_types import element_from
from compiler.ops.creation import EyeLike, Fill, Range
from compiler.ops.shape import ShapeOf, SizeOf

_SCALARS: Final = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_string": np.object_,
    "value_strings": np.object_,
}


@converts("Constant")
def constant(site: Site) -> Value:
    """Exactly one of the value attributes."""
    given = [name for name in ("value", "sparse_value", *_SCALARS) if site.attribute(name) is not None]
    if len(given) != 1:
        site.invalid(f"it has {len(given)} values; expected exactly one")
    value = site.attribute(given[0])
    return site.b.constant(np.array(value, _SCALARS[given[0]]) if given[0] in _SCALARS else value)


@converts("ConstantOfShape")
def constant_of_shape(site: Site) -> Value:
    """A tensor of one value, float32 zero by default."""
    value = site.attribute("value")
    data = np.zeros(1, np.float32) if value is None else value.array
    if data.size != 1:
        site.bad_attribute(f"attribute 'value' has {data.size} elements; expected one")
    return site.b(Fill, as_int64(site, site.input(0)), site.b.constant(data.reshape(())))


@converts("Range")
def range_(site: Site) -> Value:
    """Numbers from start to limit; ONNX's own function bodies pass vectors of one element."""
    ends = [site.folded(value) for value in site.given]
    return site.b(Range, *(squeeze(site, value, (0,)) if value.tensor.dims == (1,) else value for value in ends))


@converts("Shape")
def shape(site: Site) -> Value:
    """The sizes, or since version 15 a part of them."""
    x = site.input(0)
    start, end = site.attribute("start") or 0, site.attribute("end")
    if x.tensor.dims is None:
        if end is None and not start:
            return site.b(ShapeOf, x)
        site.undecided("a part of the sizes of a tensor of unknown rank")
    rank = len(x.tensor.dims)
    stop = rank if end is None else end
    first, last = (min(max(place + rank if place < 0 else place, 0), rank) for place in (start, stop))
    return site.b(ShapeOf, x, start=first, end=max(first, last))


@converts("Size")
def size(site: Site) -> Value:
    """The number of elements."""
    return site.b(SizeOf, site.input(0))


@converts("EyeLike")
def eye_like(site: Site) -> Value:
    """Ones on a diagonal."""
    number = site.attribute("dtype")
    element = site.tensor(0).element if number is None else element_from(number, f"node '{site.node}'")
    return site.b(EyeLike, site.input(0), to=element, k=site.attribute("k"))
