"""Tensors made from sizes and a few numbers, and sizes themselves."""

from __future__ import annotations

import numpy as np

from compiler.frontends.assembly import cast, number, shape_of
from compiler.frontends.tensorflow.converters.source import variable
from compiler.frontends.tensorflow.site import Results, Site, converts
from compiler.ir import F32, Value
from compiler.ops.compose import Emit, widened
from compiler.ops.creation import Fill, Range
from compiler.ops.sampling import Multinomial, RandomNormal, RandomUniform
from compiler.ops.shape import SizeOf


def _sizes(site: Site, index: int, output: int) -> Value:
    x = site.value(index)
    site.rank(x)
    return site.folded(cast(site, shape_of(site, x), site.element(output)))


@converts("Shape")
def shape(site: Site) -> Value:
    """The sizes."""
    return _sizes(site, 0, 0)


@converts("ShapeN")
def shapes(site: Site) -> Results:
    """The sizes of each."""
    return [_sizes(site, index, index) for index in range(len(site.inputs))]


@converts("Size")
def size(site: Site) -> Value:
    """The number of elements."""
    return site.folded(cast(site, site.op(SizeOf, site.value(0)), site.element()))


@converts("Rank")
def rank(site: Site) -> Value:
    """The number of dims."""
    return number(site, site.rank(site.value(0)), site.element())


@converts("VariableShape")
def variable_shape(site: Site) -> Value:
    """The sizes of a variable."""
    found = variable(site, 0)
    return site.constant(found.shape(), site.element())


@converts("Fill")
def fill(site: Site) -> Value:
    """One number everywhere."""
    return site.op(Fill, site.shape(0), site.value(1))


@converts("Empty")
def empty(site: Site) -> Value:
    """Elements that may be anything: zeros."""
    return site.op(Fill, site.shape(0), number(site, 0, site.element()))


@converts("ZerosLike", "OnesLike")
def like(site: Site) -> Value:
    """Zeros or ones in the sizes of a tensor."""
    x = site.value(0)
    site.rank(x)
    return site.op(Fill, shape_of(site, x), number(site, site.operator == "OnesLike", x.tensor.element))


@converts("Range")
def range_of(site: Site) -> Value:
    """Numbers with equal distances, the end not among them."""
    return site.folded(site.op(Range, *site.values))


@converts("LinSpace")
def lin_space(site: Site) -> Value:
    """``num`` numbers with equal distances, both ends among them."""
    start, stop, _ = site.values
    count = site.whole(2, "the number of elements")
    element = start.tensor.element
    wide = widened(element)
    e = Emit(site.b)
    first, last = (cast(site, value, wide) for value in (start, stop))
    if count == 1:
        return site.op(Fill, site.integers(1), start)
    step = e("div", e("sub", last, first), float(count - 1))
    places = site.constant(np.arange(count), wide)
    ends = site.b.constant(np.arange(count) == count - 1)
    return cast(site, e("select", ends, last, e("add", first, e("mul", places, step))), element)


@converts("RandomUniform", "RandomStandardNormal")
def random(site: Site) -> Value:
    """Fresh random numbers at each run: those of TensorFlow's own generator are others."""
    definition = RandomUniform if site.operator == "RandomUniform" else RandomNormal
    return site.op(definition, site.shape(0), to=site.element())


@converts("RandomUniformInt")
def random_integers(site: Site) -> Value:
    """Fresh random integers below a bound."""
    from compiler.ops.elementwise import Floor

    low, high = (site.whole(index, "a bound") for index in (1, 2))
    numbers = site.op(RandomUniform, site.shape(0), low=float(low), high=float(high), to=F32)
    return cast(site, site.op(Floor, numbers), site.element())


@converts("Multinomial")
def multinomial(site: Site) -> Value:
    """Classes drawn by unnormalized log-probabilities."""
    samples = site.whole(1, "the number of samples")
    return site.op(Multinomial, site.value(0), samples=samples, to=site.element())
