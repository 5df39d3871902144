"""Pooling: windows over the spatial dims of [N, C, *S] joined by a maximum, a sum or a norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import EvaluationError, TypeMismatch
from compiler.ir import I64, Builder, Call, ElementType, Op, TensorType, Type, Value, tensor
from compiler.ops.compose import COMPUTE_TYPE, Emit, Evaluated, Rounded, known_sizes, widened
from compiler.ops.registry import FLAG, FLOAT, REAL, Attribute, Composite, Operand, Variable, integer, register
from compiler.ops.scalars import limits
from compiler.ops.windows import CEIL_MODE, KERNEL, PADS, STRIDES, WINDOW, WindowPlan, Windows, window_view
from compiler.ops.work import Access, Arg, Combiner, Expression, Index, Iterator, IteratorKind, Loops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array, Dim
    from compiler.ops.work import Work

_T = Variable("T", REAL)
_F = Variable("T", FLOAT)
POOL: Final = (KERNEL, *WINDOW, CEIL_MODE)


def lowest(element: ElementType) -> int | float:
    """The least value of a real element type: -inf for floats."""
    return limits(element)[0]


def _pooled(name: str, call: Call) -> tuple[TensorType, ...]:
    x, kernel = call.tensor(0), call.integers("kernel")
    if x.dims is None:
        return (tensor(x.element, None),)
    if x.rank != len(kernel) + 2:
        msg = f"{name}: x is {x} and the kernel {list(kernel)}; expected rank {len(kernel) + 2}"
        raise TypeMismatch(msg)
    dims = WindowPlan.of(name, call, kernel).dims(x.dims[2:])
    return (tensor(x.element, (*x.dims[:2], *dims)),)


def _windows(name: str, call: Call, shape: Sequence[int]) -> tuple[Windows, ...]:
    return WindowPlan.of(name, call, call.integers("kernel")).windows(shape[2:])


def _known_windows(name: str, call: Call) -> tuple[Windows, ...]:
    """The windows of a call whose spatial dims are known."""
    x = call.tensor(0)
    return WindowPlan.of(name, call, call.integers("kernel")).windows(known_sizes(x, range(2, x.rank)))


def _pool_loops(
    windows: Sequence[Windows], shape: Sequence[int], body: Expression, fill: float, combiner: Combiner, start: float,
    accumulate: ElementType,
) -> Work:  # fmt: skip
    spatial = len(windows)
    iterators = (
        *map(Iterator, (*shape[:2], *(window.count for window in windows))),
        *(Iterator(window.kernel, IteratorKind.WINDOW) for window in windows),
    )
    lead = (Index(((0, 1),)), Index(((1, 1),)))
    places = tuple(window.index(2 + d, 2 + spatial + d) for d, window in enumerate(windows))
    write = Access(0, (*lead, *(Index(((2 + d, 1),)) for d in range(spatial))))
    return (Loops(iterators, (Access(0, (*lead, *places), fill=fill),), body, write, combiner, start, accumulate),)


@register
class MaxPool(Evaluated):
    """Greatest element of each window; padding never wins; NaN does. x [N, C, *S] -> [N, C, *O].

    A window that lies wholly in the padding gives the lowest value of the type. Sizes follow ONNX MaxPool.
    """

    name: ClassVar[str] = "max_pool"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _T),)
    attributes: ClassVar[tuple[Attribute, ...]] = POOL

    def infer(self, call: Call) -> tuple[Type, ...]:
        return _pooled(self.name, call)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Parallel loops over windows, window loops inside them."""
        del results
        x = call.tensor(0)
        low = lowest(x.element)
        windows = _windows(self.name, call, x.shape)
        return _pool_loops(windows, x.shape, Arg(0, x.element), low, Combiner.MAX, low, x.element)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Maximum over the window view."""
        x = operands[0]
        windows = _windows(self.name, call, x.shape)
        low = lowest(call.tensor(0).element)
        return (_maximum(window_view(x, windows, low), len(windows)),)


def _maximum(view: Array, spatial: int) -> Array:
    lead = view.shape[: view.ndim - spatial]
    flat = view.reshape(*lead, -1)
    result = flat[..., 0].copy()
    for position in range(1, flat.shape[-1]):
        np.maximum(result, flat[..., position], out=result)
    return result


@register
class MaxPoolIndices(Evaluated, Composite):
    """Max pooling that also says where: results values and indices (int64), both [N, C, *O].

    An index counts through the whole of x in row-major order; with ``column_major`` the spatial dims of a channel count
    with the first dim fastest. The first greatest element wins, NaN being greatest. Source: ONNX MaxPool.
    """

    name: ClassVar[str] = "max_pool_indices"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _T),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        *POOL,
        Attribute("column_major", FLAG, False, "Count a channel's elements first dim fastest."),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        (values,) = _pooled(self.name, call)
        return (values, tensor(I64, values.dims))

    def _places(self, call: Call, shape: Sequence[int]) -> tuple[Array, Array]:
        """For each window and tap the place in a channel, and the index that is reported; both [windows, taps].

        Padding has the place -1 and comes last in its window, so that of equal elements a real one is the first.
        """
        windows, spatial = _windows(self.name, call, shape), tuple(shape[2:])
        flat = np.arange(int(np.prod(spatial, initial=1)))
        taps = int(np.prod([window.kernel for window in windows], initial=1))
        places = window_view(flat.reshape(spatial), windows, -1).reshape(-1, taps)
        places = np.take_along_axis(places, np.argsort(places < 0, axis=1, kind="stable"), 1)
        numbers = flat.reshape(spatial[::-1]).T.reshape(-1) if call.flag("column_major") else flat
        return places, np.where(places < 0, -1, numbers[places] if flat.size else places)

    def decompose(self, op: Op, builder: Builder) -> Sequence[Value]:
        """Windows by a gather of constant places, their maximum, and the number of the place where it is."""
        call, emit = op.call(), Emit(builder)
        shape = call.shape(0)
        places, numbers = self._places(call, shape)
        images, size = list(shape[:2]), int(np.prod(shape[2:], initial=1))
        flat = emit.reshape(op.operand(0), [*images, size])
        if np.any(places < 0):
            low = emit.scalar(lowest(call.tensor(0).element), call.tensor(0).element)
            flat = emit("pad", flat, emit.integers([0, 0, 0, 0, 0, 1]), low)
        taken = emit("gather", flat, emit.constant(np.where(places < 0, size, places)), axis=2)
        best = emit("argmax", taken, axis=3, keep_dims=False)
        entries = emit("add", best, emit.constant(np.arange(places.shape[0]) * places.shape[1]))
        found = emit("gather", emit.constant(numbers.reshape(-1)), entries, axis=0)
        first = np.arange(images[0] * images[1]).reshape(*images, 1) * size
        found = emit("add", found, emit.constant(first))
        values = emit.reduce("reduce_max", taken, (3,), keep_dims=False)
        return [
            emit.reshape(value, result.tensor.shape) for value, result in zip((values, found), op.results, strict=True)
        ]

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Position of the greatest element of each window, then both results by it."""
        x = operands[0]
        places, numbers = self._places(call, x.shape)
        flat = x.reshape(*x.shape[:2], -1)
        taken = np.where(places < 0, np.asarray(lowest(call.tensor(0).element), x.dtype), flat[..., places])
        best = np.argmax(taken, axis=-1)
        found = np.take_along_axis(np.broadcast_to(numbers, taken.shape), best[..., None], -1)[..., 0]
        first = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], 1) * flat.shape[-1]
        shape = (*x.shape[:2], *(window.count for window in _windows(self.name, call, x.shape)))
        return taken.max(axis=-1).reshape(shape), (found + first).astype(np.int64).reshape(shape)


@register
class SumPool(Evaluated):
    """Sum of each window, padding counting as 0. x [N, C, *S] -> [N, C, *O]; floats below 32 bits sum in float32."""

    name: ClassVar[str] = "sum_pool"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _T),)
    attributes: ClassVar[tuple[Attribute, ...]] = POOL

    def infer(self, call: Call) -> tuple[Type, ...]:
        return _pooled(self.name, call)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Parallel loops over windows, window loops inside them."""
        del results
        x = call.tensor(0)
        windows = _windows(self.name, call, x.shape)
        return _pool_loops(windows, x.shape, Arg(0, x.element), 0, Combiner.ADD, 0, widened(x.element))

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Sum over the window view."""
        x, element = operands[0], call.tensor(0).element
        return (_sum(x, _windows(self.name, call, x.shape), widened(element)).astype(element.dtype, copy=False),)


def _sum(x: Array, windows: Sequence[Windows], element: ElementType) -> Array:
    axes = tuple(range(-len(windows), 0))
    return np.asarray(window_view(x, windows, 0).sum(axis=axes, dtype=element.dtype))


def _window_attributes(call: Call) -> dict[str, Any]:
    return {spec.name: call.attributes[spec.name] for spec in POOL}


def _covered(window: Windows, *, include_pad: bool) -> list[int]:
    """Elements that each window of one dim averages over: padding after the explicit one never counts."""
    low, high = (-window.low, window.size + window.high) if include_pad else (0, window.size)
    starts = [index * window.stride - window.low for index in range(window.count)]
    return [
        sum(low <= start + position * window.dilation < high for position in range(window.kernel)) for start in starts
    ]


def window_counts(windows: Sequence[Windows], *, include_pad: bool) -> Array:
    """Number of elements that each window averages over, as an int64 array of one dim a spatial dim."""
    counts: Array = np.ones((1,) * len(windows), np.int64)
    for axis, window in enumerate(windows):
        shape = [-1 if d == axis else 1 for d in range(len(windows))]
        counts = counts * np.asarray(_covered(window, include_pad=include_pad), np.int64).reshape(shape)
    return counts


@register
class AvgPool(Rounded):
    """Mean of each window. x [N, C, *S] -> [N, C, *O].

    Divides by the number of elements of x in the window, or, with ``count_include_pad``, of x and its explicit padding
    (never of what ``ceil_mode`` adds). Source: ONNX AveragePool-19.
    """

    name: ClassVar[str] = "avg_pool"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _F),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        *POOL,
        Attribute("count_include_pad", FLAG, False, "Padding counts in the mean."),
        COMPUTE_TYPE,
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        return _pooled(self.name, call)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        """sum_pool / counts. Raises UnsupportedType where counts vary and sizes are symbolic."""
        x = operands[0]
        assert x is not None
        total = emit("sum_pool", x, **_window_attributes(call))
        include = call.flag("count_include_pad")
        kernel = call.integers("kernel")
        padded = any(call.integers("pads")) or call.text("auto_pad") != "explicit"
        if not call.flag("ceil_mode") and (include or not padded):
            return (emit("div", total, float(np.prod(kernel))),)
        counts = window_counts(_known_windows(self.name, call), include_pad=include)
        if counts.size and (counts == counts.flat[0]).all():
            return (emit("div", total, float(counts.flat[0])),)
        return (emit("div", total, emit.constant(counts.astype(x.tensor.element.dtype))),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Window sums over window sums of ones."""
        x, include = operands[0], call.flag("count_include_pad")
        windows = _windows(self.name, call, x.shape)
        ones = np.ones(x.shape[2:], x.dtype)
        if include:
            ones = np.pad(ones, [(w.low, w.high) for w in windows], constant_values=1)
            windows_of_ones = [
                Windows(size, w.kernel, w.stride, w.dilation, 0, 0, w.count)
                for size, w in zip(ones.shape, windows, strict=True)
            ]
        else:
            windows_of_ones = list(windows)
        element = self.compute_element(call)
        return (_sum(x, windows, element) / _sum(ones, windows_of_ones, element),)


@register
class LpPool(Rounded):
    """The p-norm of each window: (sum of |x|^p)^(1/p). x [N, C, *S] -> [N, C, *O]. Source: ONNX LpPool-18."""

    name: ClassVar[str] = "lp_pool"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _F),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        *POOL,
        Attribute("p", integer(1), 2, "Order of the norm."),
        COMPUTE_TYPE,
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        return _pooled(self.name, call)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        """abs, power, sum_pool, root; for p of 1 and 2 without powers."""
        x, p = operands[0], call.integer("p")
        assert x is not None
        powers = {1: lambda: emit("abs", x), 2: lambda: emit("mul", x, x)}
        raised = powers.get(p, lambda: emit("pow", emit("abs", x), float(p)))()
        total = emit("sum_pool", raised, **_window_attributes(call))
        roots = {1: lambda: total, 2: lambda: emit("sqrt", total)}
        return (roots.get(p, lambda: emit("pow", total, 1.0 / p))(),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """By the formula."""
        x, p = operands[0], call.integer("p")
        windows = _windows(self.name, call, x.shape)
        total = _sum(np.abs(x) ** p, windows, self.compute_element(call))
        return (total ** (1.0 / p),)


@register
class MaxUnpool(Evaluated, Composite):
    """Puts each element of x [N, C, *O] at its index (as max_pool_indices gives it) of a tensor of zeros.

    An index counts in the natural size, stride * (size - 1) + kernel - padding a spatial dim; ``output_shape``, where
    given, is the result's size, at whose front that stands. Among duplicates of an index the last stays. Source:
    ONNX MaxUnpool-11. Indices outside raise EvaluationError.
    """

    name: ClassVar[str] = "max_unpool"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("x", _T),
        Operand("indices", Variable("I", frozenset({I64}))),
        Operand("output_shape", Variable("S", frozenset({I64})), optional=True, value=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (KERNEL, STRIDES, PADS)

    def _natural(self, call: Call, dims: Sequence[Any]) -> list[Any]:
        kernel = call.integers("kernel")
        strides = call.integers("strides") or (1,) * len(kernel)
        pads = call.integers("pads") or (0,) * (2 * len(kernel))
        totals = [low + high for low, high in zip(pads[: len(kernel)], pads[len(kernel) :], strict=True)]
        return [
            (dim - 1) * stride + size - total if isinstance(dim, int) else "?"
            for dim, stride, size, total in zip(dims[2:], strides, kernel, totals, strict=True)
        ]

    def infer(self, call: Call) -> tuple[Type, ...]:
        x = call.tensor(0)
        if x.dims is None:
            return (x,)
        if x.rank != len(call.integers("kernel")) + 2:
            msg = f"max_unpool: x is {x}; expected rank {len(call.integers('kernel')) + 2}"
            raise TypeMismatch(msg)
        places = call.tensor(1).dims
        if places is not None and not _may_be_equal(places, x.dims):
            msg = f"max_unpool: places are {call.tensor(1)} for x of {x}; expected equal shapes"
            raise TypeMismatch(msg)
        if not call.has(2):
            return (tensor(x.element, (*x.dims[:2], *self._natural(call, x.dims))),)
        shape = call.value(2)
        if shape is None:
            return (tensor(x.element, ["?"] * x.rank),)
        return (tensor(x.element, [int(size) for size in shape]),)

    def decompose(self, op: Op, builder: Builder) -> Sequence[Value]:
        """A flat scatter into zeros, then padding or cutting at the end of each dim."""
        call, emit = op.call(), Emit(builder)
        x, element = call.shape(0), call.tensor(0).element
        natural = [int(size) for size in (*x[:2], *self._natural(call, x))]
        wanted = op.results[0].tensor.shape
        zeros = emit.constant(np.zeros(int(np.prod(natural, initial=1)), element.dtype))
        indices, values = (emit.reshape(op.operand(index), [-1]) for index in (1, 0))
        placed = emit.reshape(emit("scatter_elements", zeros, indices, values, axis=0), natural)
        after = [new - old for new, old in zip(wanted, natural, strict=True)]
        return (emit("pad", placed, emit.integers([0] * len(after) + after)) if any(after) else placed,)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """One flat assignment into the natural size, which then fills the front of the result."""
        x, indices = operands[0], operands[1]
        natural = tuple(int(size) for size in (*x.shape[:2], *self._natural(call, x.shape)))
        flat = np.zeros(int(np.prod(natural, initial=1)), x.dtype)
        where = np.asarray(indices).reshape(-1)
        if where.size and (where.min() < 0 or where.max() >= flat.size):
            msg = f"max_unpool: indices from {where.min()} to {where.max()}; expected them in 0..{flat.size - 1}"
            raise EvaluationError(msg)
        flat[where] = x.reshape(-1)
        placed = flat.reshape(natural)
        if len(operands) < 3 or operands[2] is None:
            return (placed,)
        result = np.zeros([int(size) for size in operands[2]], x.dtype)
        shared = tuple(slice(0, min(sizes)) for sizes in zip(result.shape, natural, strict=True))
        result[shared] = placed[shared]
        return (result,)


def _may_be_equal(one: Sequence[Dim], other: Sequence[Dim]) -> bool:
    """Whether no two known sizes differ."""
    if len(one) != len(other):
        return False
    return all(a == b or isinstance(a, str) or isinstance(b, str) for a, b in zip(one, other, strict=True))
