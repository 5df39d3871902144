"""Reductions, positions of extremes, and running sums.

Sums and products of floats narrower than 32 bits accumulate in float32 and are rounded once.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import EvaluationError
from compiler.ir import BOOL, F64, I64, Array, Dim, ElementType, TensorType, Type, element_of, tensor
from compiler.ops.compose import COMPUTE_TYPE, Emit, Rounded, widened
from compiler.ops.convert import convert
from compiler.ops.registry import (
    BOOLEAN,
    FLAG,
    NUMERIC,
    REAL,
    Attribute,
    Operand,
    Operator,
    Variable,
    integer,
    integers,
    register,
)
from compiler.ops.scalars import apply_scalar, limits, widen
from compiler.ops.shapes import normalize_axes, normalize_axis
from compiler.ops.work import (
    Access,
    Arg,
    Combiner,
    Index,
    Iterator,
    IteratorKind,
    Literal,
    Loops,
    identity_access,
    nests,
    parallel,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Call, RunRegion, Value
    from compiler.ops.work import Work

AXES: Final = Attribute("axes", integers(), doc="dims to reduce, negative ones from the end; none reduces nothing")
KEEP_DIMS: Final = Attribute("keep_dims", FLAG, True, "whether reduced dims stay, with size 1")


def reduced_dims(name: str, dims: Sequence[Dim], axes: Sequence[int], keep_dims: bool) -> tuple[Dim, ...]:
    """The dims after a reduction. Raises InvalidAttribute for an axis outside the rank or given twice."""
    taken = set(normalize_axes(name, axes, len(dims)))
    return tuple(1 if axis in taken else dim for axis, dim in enumerate(dims) if keep_dims or axis not in taken)


def reduced_write(rank: int, axes: Sequence[int], keep_dims: bool) -> Access:
    """Where a nest with one loop a dim of the operand writes its reduction over ``axes``."""
    dims = [Index() if axis in axes else Index(((axis, 1),)) for axis in range(rank) if keep_dims or axis not in axes]
    return Access(0, tuple(dims))


class Reduction(Operator):
    """Base: ``combiner`` joins the elements along ``axes``, starting from ``initial``."""

    attributes: ClassVar[tuple[Attribute, ...]] = (AXES, KEEP_DIMS)
    combiner: ClassVar[Combiner]
    ufunc: ClassVar[np.ufunc]

    @abstractmethod
    def initial(self, element: ElementType) -> bool | int | float:
        """The result over no elements."""

    def joined_by(self, element: ElementType) -> Combiner:  # noqa: ARG002 - for overriding
        """The combiner for this element type."""
        return self.combiner

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Reduced dims become 1 or go. Raises InvalidAttribute for a wrong axis."""
        x = call.tensor(0)
        if x.dims is None:
            return (x.with_element(x.element),)
        dims = reduced_dims(self.name, x.dims, call.integers("axes"), call.flag("keep_dims"))
        return (x.with_element(x.element).with_dims(dims),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """The reduction; floats accumulate in float64 and are rounded once."""
        x = np.asarray(operands[0])
        axes = normalize_axes(self.name, call.integers("axes"), x.ndim)
        if not axes:
            return (x,)
        element = element_of(x.dtype)
        wide = x.astype(np.float64) if element.is_float else widen(x)
        keep_dims, initial = call.flag("keep_dims"), self.initial(element)
        with np.errstate(all="ignore"):
            joined = self.ufunc.reduce(wide, axis=axes, keepdims=keep_dims, initial=initial, dtype=wide.dtype)
            return (np.asarray(joined).astype(x.dtype),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """One loop a dim of the operand; over an empty set a nest that fills in the starting value."""
        x, result = call.tensor(0), results[0]
        assert isinstance(result, TensorType)
        axes = normalize_axes(self.name, call.integers("axes"), x.rank)
        write = reduced_write(x.rank, axes, call.flag("keep_dims"))
        if not axes:
            return nests(Loops(parallel(x.shape), (identity_access(0, x.rank),), Arg(0, x.element), write))
        initial = self.initial(x.element)
        if x.size == 0:
            body = Literal(initial, x.element)
            return nests(Loops(parallel(result.shape), (), body, identity_access(0, result.rank)))
        iterators = tuple(
            Iterator(size, IteratorKind.REDUCTION if axis in axes else IteratorKind.PARALLEL)
            for axis, size in enumerate(x.shape)
        )
        reads = (identity_access(0, x.rank),)
        combiner = self.joined_by(x.element)
        return (Loops(iterators, reads, Arg(0, x.element), write, combiner, initial, widened(x.element)),)


@register
class ReduceSum(Reduction):
    """Sum along the axes; over nothing 0. Integers wrap; narrow floats accumulate in float32."""

    name: ClassVar[str] = "reduce_sum"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", NUMERIC)),)
    combiner: ClassVar[Combiner] = Combiner.ADD
    ufunc: ClassVar[np.ufunc] = np.add

    def initial(self, element: ElementType) -> bool | int | float:  # noqa: ARG002
        """Zero."""
        return 0


@register
class ReduceProd(Reduction):
    """Product along the axes; over nothing 1. Integers wrap; narrow floats accumulate in float32."""

    name: ClassVar[str] = "reduce_prod"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", NUMERIC)),)
    combiner: ClassVar[Combiner] = Combiner.MUL
    ufunc: ClassVar[np.ufunc] = np.multiply

    def initial(self, element: ElementType) -> bool | int | float:  # noqa: ARG002
        """One."""
        return 1


@register
class ReduceMax(Reduction):
    """Greatest element along the axes, NaN if there is one; over nothing the type's least value. Of bools: any."""

    name: ClassVar[str] = "reduce_max"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", REAL | BOOLEAN)),)
    combiner: ClassVar[Combiner] = Combiner.MAX
    ufunc: ClassVar[np.ufunc] = np.maximum

    def initial(self, element: ElementType) -> bool | int | float:
        """The least value of the type."""
        return False if element is BOOL else limits(element)[0]

    def joined_by(self, element: ElementType) -> Combiner:
        """Bools are joined by or."""
        return Combiner.OR if element is BOOL else self.combiner


@register
class ReduceMin(Reduction):
    """Least element along the axes, NaN if there is one; over nothing the type's greatest value. Of bools: all."""

    name: ClassVar[str] = "reduce_min"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", REAL | BOOLEAN)),)
    combiner: ClassVar[Combiner] = Combiner.MIN
    ufunc: ClassVar[np.ufunc] = np.minimum

    def initial(self, element: ElementType) -> bool | int | float:
        """The greatest value of the type."""
        return True if element is BOOL else limits(element)[1]

    def joined_by(self, element: ElementType) -> Combiner:
        """Bools are joined by and."""
        return Combiner.AND if element is BOOL else self.combiner


@register
class ReduceAnd(Reduction):
    """Whether all along the axes are true; over nothing true."""

    name: ClassVar[str] = "reduce_and"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", BOOLEAN)),)
    combiner: ClassVar[Combiner] = Combiner.AND
    ufunc: ClassVar[np.ufunc] = np.logical_and

    def initial(self, element: ElementType) -> bool | int | float:  # noqa: ARG002
        """True."""
        return True


@register
class ReduceOr(Reduction):
    """Whether any along the axes is true; over nothing false."""

    name: ClassVar[str] = "reduce_or"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", BOOLEAN)),)
    combiner: ClassVar[Combiner] = Combiner.OR
    ufunc: ClassVar[np.ufunc] = np.logical_or

    def initial(self, element: ElementType) -> bool | int | float:  # noqa: ARG002
        """False."""
        return False


class Extreme(Operator):
    """Base of argmax and argmin: the position, int64, of an extreme along one axis."""

    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", REAL | BOOLEAN)),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("axis", integer(), 0, "the dim along which to look, negative ones from the end"),
        KEEP_DIMS,
        Attribute("select_last", FLAG, False, "among equal ones the last position instead of the first"),
    )
    first: ClassVar[Combiner]
    last: ClassVar[Combiner]

    @abstractmethod
    def position(self, x: Array, axis: int) -> Array:
        """The first position by numpy."""

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Int64; the axis becomes 1 or goes. Raises InvalidAttribute for a wrong axis."""
        x = call.tensor(0)
        if x.dims is None:
            return (x.with_element(I64),)
        dims = reduced_dims(self.name, x.dims, (call.integer("axis"),), call.flag("keep_dims"))
        return (x.with_element(I64).with_dims(dims),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """The positions. Raises EvaluationError along an axis of size 0."""
        x = widen(np.asarray(operands[0]))
        axis = normalize_axis(self.name, call.integer("axis"), x.ndim)
        if x.shape[axis] == 0:
            msg = f"{self.name}: axis {axis} of shape {list(x.shape)} is empty; no element is the extreme"
            raise EvaluationError(msg)
        if call.flag("select_last"):
            found = x.shape[axis] - 1 - self.position(np.flip(x, axis), axis)
        else:
            found = self.position(x, axis)
        found = np.asarray(found, np.int64)
        return (np.expand_dims(found, axis) if call.flag("keep_dims") else found,)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:  # noqa: ARG002
        """One loop a dim, the axis reduced; None along an empty axis, where there is no position."""
        x = call.tensor(0)
        axis = normalize_axis(self.name, call.integer("axis"), x.rank)
        if x.shape[axis] == 0:
            return None
        iterators = tuple(
            Iterator(size, IteratorKind.REDUCTION if d == axis else IteratorKind.PARALLEL)
            for d, size in enumerate(x.shape)
        )
        write = reduced_write(x.rank, (axis,), call.flag("keep_dims"))
        combiner = self.last if call.flag("select_last") else self.first
        return nests(Loops(iterators, (identity_access(0, x.rank),), Arg(0, x.element), write, combiner))


@register
class ArgMax(Extreme):
    """Position of the greatest element along an axis; NaN counts as the greatest."""

    name: ClassVar[str] = "argmax"
    first: ClassVar[Combiner] = Combiner.ARGMAX
    last: ClassVar[Combiner] = Combiner.ARGMAX_LAST

    def position(self, x: Array, axis: int) -> Array:
        """By numpy's argmax."""
        return np.asarray(np.argmax(x, axis))


@register
class ArgMin(Extreme):
    """Position of the least element along an axis; NaN counts as the least."""

    name: ClassVar[str] = "argmin"
    first: ClassVar[Combiner] = Combiner.ARGMIN
    last: ClassVar[Combiner] = Combiner.ARGMIN_LAST

    def position(self, x: Array, axis: int) -> Array:
        """By numpy's argmin."""
        return np.asarray(np.argmin(x, axis))


class Running(Operator):
    """Base of running sums and products along one axis, in the operand's shape (ONNX CumSum, CumProd)."""

    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", NUMERIC)),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("axis", integer(), doc="the dim along which to run, negative ones from the end"),
        Attribute("exclusive", FLAG, False, "leave the element itself out: the first result is the starting value"),
        Attribute("reverse", FLAG, False, "run from the end"),
    )
    combiner: ClassVar[Combiner]
    start: ClassVar[int]
    accumulator: ClassVar[np.ufunc]

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The operand's dims. Raises InvalidAttribute for a wrong axis."""
        x = call.tensor(0)
        if x.dims is not None:
            normalize_axis(self.name, call.integer("axis"), x.rank)
        return (x.with_element(x.element),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Each prefix; floats accumulate in float64 and are rounded once."""
        x = np.asarray(operands[0])
        axis = normalize_axis(self.name, call.integer("axis"), x.ndim)
        wide = x.astype(np.float64) if call.tensor(0).element.is_float else widen(x)
        if call.flag("reverse"):
            wide = np.flip(wide, axis)
        with np.errstate(all="ignore"):
            found = np.asarray(self.accumulator.accumulate(wide, axis, dtype=wide.dtype))
            if call.flag("exclusive") and x.shape[axis]:
                head = np.full_like(np.take(wide, [0], axis), self.start)
                found = np.concatenate([head, np.delete(found, -1, axis)], axis)
            if call.flag("reverse"):
                found = np.flip(found, axis)
            return (np.ascontiguousarray(found).astype(x.dtype),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:  # noqa: ARG002
        """The axis is a sequential loop; leaving the element out reads one place back, the starting value before."""
        x = call.tensor(0)
        axis = normalize_axis(self.name, call.integer("axis"), x.rank)
        size = x.shape[axis]
        step, first = (-1, size - 1) if call.flag("reverse") else (1, 0)
        exclusive = call.flag("exclusive")
        iterators = tuple(
            Iterator(extent, IteratorKind.SEQUENTIAL if d == axis else IteratorKind.PARALLEL)
            for d, extent in enumerate(x.shape)
        )

        def along(offset: int) -> tuple[Index, ...]:
            return tuple(Index(((d, step),), offset) if d == axis else Index(((d, 1),)) for d in range(x.rank))

        read = Access(0, along(first - step if exclusive else first), self.start if exclusive else None)
        write = Access(0, along(first))
        body = Arg(0, x.element)
        return nests(Loops(iterators, (read,), body, write, self.combiner, self.start, widened(x.element)))


@register
class CumSum(Running):
    """Running sum along an axis. Integers wrap; narrow floats accumulate in float32."""

    name: ClassVar[str] = "cumsum"
    combiner: ClassVar[Combiner] = Combiner.ADD
    start: ClassVar[int] = 0
    accumulator: ClassVar[np.ufunc] = np.add


@register
class CumProd(Running):
    """Running product along an axis. Integers wrap; narrow floats accumulate in float32."""

    name: ClassVar[str] = "cumprod"
    combiner: ClassVar[Combiner] = Combiner.MUL
    start: ClassVar[int] = 1
    accumulator: ClassVar[np.ufunc] = np.multiply


class Formula(Rounded):
    """Base of the reductions with a formula around a sum, computed at the compute type and rounded once.

    ``real`` marks the formulas that leave the integers; integers then go through float64 and truncate at the end, as
    onnxruntime's do.
    """

    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", REAL)),)
    attributes: ClassVar[tuple[Attribute, ...]] = (AXES, KEEP_DIMS, COMPUTE_TYPE)
    real: ClassVar[bool] = False

    @abstractmethod
    def formula(self, emit: Emit, x: Value, axes: tuple[int, ...], keep_dims: bool) -> Value:
        """The formula on the widened operand."""

    @abstractmethod
    def values(self, x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
        """The formula by numpy: floats as float64, integers in their own type."""

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Reduced dims become 1 or go. Raises InvalidAttribute for a wrong axis."""
        x = call.tensor(0)
        if x.dims is None:
            return (x.with_element(x.element),)
        dims = reduced_dims(self.name, x.dims, call.integers("axes"), call.flag("keep_dims"))
        return (tensor(x.element, dims),)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        """The formula. Raises UnsupportedType for an unknown rank."""
        x = operands[0]
        assert x is not None
        if self.real and not x.tensor.element.is_float:
            x = emit.cast(x, F64)
        axes = normalize_axes(self.name, call.integers("axes"), x.tensor.rank)
        return (self.formula(emit, x, axes, call.flag("keep_dims")),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The values; a float result outside an integer's range wraps as casts do."""
        x = np.asarray(operands[0])
        element = call.tensor(0).element
        wide = x.astype(np.float64) if element.is_float or self.real else widen(x)
        axes = normalize_axes(self.name, call.integers("axes"), x.ndim)
        return (convert(np.asarray(self.values(wide, axes, call.flag("keep_dims"))), element),)


def _sum(x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
    return np.asarray(x.sum(axes, keepdims=keep_dims, dtype=x.dtype))


@register
class ReduceMean(Formula):
    """Sum along the axes divided by the number of elements; NaN over nothing (0 for integers, which truncate)."""

    name: ClassVar[str] = "reduce_mean"

    def formula(self, emit: Emit, x: Value, axes: tuple[int, ...], keep_dims: bool) -> Value:
        """sum(x) / count, the count from the shape where it is symbolic."""
        total = emit.reduce("reduce_sum", x, axes, keep_dims=keep_dims)
        return emit("div", total, _count(emit, x, axes))

    def values(self, x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
        """sum(x) / count."""
        count = np.asarray(math.prod(x.shape[axis] for axis in axes)).astype(x.dtype)
        return apply_scalar("div", _sum(x, axes, keep_dims), count)


def _count(emit: Emit, x: Value, axes: tuple[int, ...]) -> Value | float:
    dims = [x.tensor.known_dims[axis] for axis in axes]
    sizes = [dim for dim in dims if isinstance(dim, int)]
    if len(sizes) == len(dims):
        return float(math.prod(sizes))
    symbolic = [axis for axis, dim in zip(axes, dims, strict=True) if not isinstance(dim, int)]
    factors = [emit("shape_of", x, start=axis, end=axis + 1) for axis in symbolic]
    factors.append(emit.integers([math.prod(sizes)]))
    count = emit.reduce("reduce_prod", emit.concat(factors, 0), (0,), keep_dims=False)
    return emit.cast(count, x.tensor.element)


@register
class ReduceL1(Formula):
    """Sum of magnitudes along the axes."""

    name: ClassVar[str] = "reduce_l1"

    def formula(self, emit: Emit, x: Value, axes: tuple[int, ...], keep_dims: bool) -> Value:
        """sum(|x|)."""
        return emit.reduce("reduce_sum", emit("abs", x), axes, keep_dims=keep_dims)

    def values(self, x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
        """sum(|x|)."""
        return _sum(np.abs(x), axes, keep_dims)


@register
class ReduceL2(Formula):
    """Square root of the sum of squares along the axes."""

    name: ClassVar[str] = "reduce_l2"
    real: ClassVar[bool] = True

    def formula(self, emit: Emit, x: Value, axes: tuple[int, ...], keep_dims: bool) -> Value:
        """sqrt(sum(x x))."""
        return emit("sqrt", emit.reduce("reduce_sum", emit("mul", x, x), axes, keep_dims=keep_dims))

    def values(self, x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
        """sqrt(sum(x x))."""
        return np.asarray(np.sqrt(_sum(x * x, axes, keep_dims)))


@register
class ReduceSumSquare(Formula):
    """Sum of squares along the axes."""

    name: ClassVar[str] = "reduce_sum_square"

    def formula(self, emit: Emit, x: Value, axes: tuple[int, ...], keep_dims: bool) -> Value:
        """sum(x x)."""
        return emit.reduce("reduce_sum", emit("mul", x, x), axes, keep_dims=keep_dims)

    def values(self, x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
        """sum(x x)."""
        return _sum(x * x, axes, keep_dims)


@register
class ReduceLogSum(Formula):
    """Natural logarithm of the sum along the axes."""

    name: ClassVar[str] = "reduce_log_sum"
    real: ClassVar[bool] = True

    def formula(self, emit: Emit, x: Value, axes: tuple[int, ...], keep_dims: bool) -> Value:
        """log(sum(x))."""
        return emit("log", emit.reduce("reduce_sum", x, axes, keep_dims=keep_dims))

    def values(self, x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
        """log(sum(x))."""
        return np.asarray(np.log(_sum(x, axes, keep_dims)))


@register
class ReduceLogSumExp(Formula):
    """Natural logarithm of the sum of exponentials along the axes, without overflow: m + log(sum(exp(x - m))).

    m is the greatest element, or 0 where that is infinite, so that infinities and the empty set (-infinity) come out
    as the plain formula has them.
    """

    name: ClassVar[str] = "reduce_log_sum_exp"
    real: ClassVar[bool] = True

    def formula(self, emit: Emit, x: Value, axes: tuple[int, ...], keep_dims: bool) -> Value:
        """The shifted formula."""
        greatest = emit.reduce("reduce_max", x, axes, keep_dims=True)
        zero = emit.scalar(0.0, x.tensor.element)
        shift = emit("select", emit("isfinite", greatest), greatest, zero)
        exponentials = emit("exp", emit("sub", x, shift))
        total = emit("log", emit.reduce("reduce_sum", exponentials, axes, keep_dims=True))
        shifted = emit("add", total, shift)
        return shifted if keep_dims else emit.squeeze(shifted, axes)

    def values(self, x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
        """The shifted formula."""
        greatest = x.max(axes, keepdims=True, initial=-np.inf)
        shift = np.where(np.isfinite(greatest), greatest, 0.0)
        shifted = np.log(_sum(np.exp(x - shift), axes, keep_dims=True)) + shift
        return np.asarray(shifted if keep_dims else shifted.squeeze(axes))
