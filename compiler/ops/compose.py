"""What composites share: an emitter for decompositions, and the one rule of rounding.

A composite's meaning is its formula in exact arithmetic, rounded once at each result. :class:`Rounded` keeps that rule
in one place: it widens float operands to the compute type before the formula and rounds the results after it, both in
the decomposition and in the evaluation.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import TypeMismatch, UnsupportedType
from compiler.ir import F32, Builder, Call, ElementType, Op, RunRegion, TensorType, Type, Value, element_of
from compiler.ops.convert import convert
from compiler.ops.registry import ELEMENT, Attribute, Composite, Operator, lookup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compiler.ir import Array, AttributeValue, Dim

COMPUTE_TYPE: Final = Attribute(
    "compute_type", ELEMENT, None, "Type of the formula; absent: float32 for narrower floats, else the operand's own."
)


def widened(element: ElementType) -> ElementType:
    """The element type in which sums and formulas over ``element`` are computed: float32 for floats below 32 bits."""
    return F32 if element.is_float and element.bits < F32.bits else element


def known_sizes(type_: TensorType, axes: Iterable[int]) -> tuple[int, ...]:
    """The sizes of these dims as numbers; others may be symbolic. Raises UnsupportedType where one of them is."""
    return type_.with_dims([type_.known_dims[axis] for axis in axes]).shape


def padded(operands: Sequence[Any], count: int) -> list[Any]:
    """``count`` operands, with None for those omitted at the end."""
    return [*operands, *[None] * (count - len(operands))]


class Emit:
    """Builds operations by name; Python numbers become scalars of the last operand's element type."""

    __slots__ = ("builder",)

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def __call__(self, name: str, *operands: Value | float | None, **attributes: AttributeValue) -> Value:
        """The only result of operator ``name``. Raises TypeMismatch, InvalidAttribute."""
        return self.op(name, *operands, **attributes).result

    def op(self, name: str, *operands: Value | float | None, **attributes: AttributeValue) -> Op:
        """The operation itself, for operators with several results."""
        # The last one: a select's first operand is its condition.
        element = next((operand.tensor.element for operand in reversed(operands) if isinstance(operand, Value)), F32)
        values = [self.scalar(x, element) if isinstance(x, (bool, int, float)) else x for x in operands]
        return self.builder.op(lookup(name), values, (), **attributes)

    def scalar(self, value: float, element: ElementType) -> Value:
        """A constant of rank 0."""
        return self.builder.constant(np.asarray(value).astype(element.dtype))

    def constant(self, array: Array) -> Value:
        """A constant."""
        return self.builder.constant(array)

    def integers(self, values: Sequence[int]) -> Value:
        """A constant vector of int64, as value operands are."""
        return self.builder.constant(np.asarray(values, np.int64).reshape(-1))

    def cast(self, value: Value, element: ElementType) -> Value:
        """The value in another element type; itself where it has that type."""
        return value if value.tensor.element is element else self("cast", value, to=element)

    def reshape(self, value: Value, sizes: Sequence[Dim]) -> Value:
        """The value with these sizes, one of which may be -1 or symbolic; itself where it has them.

        Raises UnsupportedType where more than one is symbolic.
        """
        if value.tensor.dims == tuple(sizes):
            return value
        numbers = [size if isinstance(size, int) else -1 for size in sizes]
        if numbers.count(-1) > 1:
            msg = f"a reshape to {list(sizes)} is needed, and more than one size is symbolic"
            raise UnsupportedType(msg)
        result = self("reshape", value, self.integers(numbers))
        if -1 not in sizes:
            result.type = result.tensor.with_dims(sizes)
        return result

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        """Dim d of the result is dim permutation[d]; the value itself where nothing moves."""
        if tuple(permutation) == tuple(range(len(permutation))):
            return value
        return self("transpose", value, permutation=tuple(permutation))

    def unsqueeze(self, value: Value, axes: Sequence[int]) -> Value:
        """Dims of size 1 put in at these places of the result."""
        return self("unsqueeze", value, self.integers(axes)) if axes else value

    def squeeze(self, value: Value, axes: Sequence[int]) -> Value:
        """Dims of size 1 taken out."""
        return self("squeeze", value, self.integers(axes)) if axes else value

    def slice(self, value: Value, axis: int, start: int, end: int) -> Value:
        """The elements start..end-1 along one axis; the value itself where those are all."""
        if start == 0 and value.tensor.known_dims[axis] == end:
            return value
        return self(
            "slice", value, self.integers([start]), self.integers([end]), self.integers([axis]), self.integers([1])
        )

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """The values one after the other along ``axis``."""
        return values[0] if len(values) == 1 else self("concat", *values, axis=axis)

    def contract(self, name: str, a: Value, b: Value, element: ElementType, **attributes: AttributeValue) -> Value:
        """A contraction summed in ``element``: of narrower floats of one type as they are, else of both cast to it."""
        if a.tensor.element is b.tensor.element is not element:
            return self(name, a, b, to=element, **attributes)
        return self(name, self.cast(a, element), self.cast(b, element), **attributes)

    def reduce(self, name: str, value: Value, axes: Sequence[int], *, keep_dims: bool = True) -> Value:
        """A reduction over these axes; the value itself where there are none."""
        if not axes:
            return value
        return self(name, value, axes=tuple(axes), keep_dims=keep_dims)

    def mean(self, value: Value, axes: Sequence[int], *, keep_dims: bool = True) -> Value:
        """Arithmetic mean in the value's own element type, as sum / count."""
        sizes = [value.tensor.known_dims[axis] for axis in axes]
        if all(isinstance(size, int) for size in sizes):
            count = int(np.prod([int(size) for size in sizes], initial=1))
            return self("div", self.reduce("reduce_sum", value, axes, keep_dims=keep_dims), float(count))
        return self.reduce("reduce_mean", value, axes, keep_dims=keep_dims)


class Evaluated(Operator):
    """An operator without regions: its ``compute`` sees call and operands alone."""

    @abstractmethod
    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The results as numpy arrays. Raises EvaluationError where the operator has no meaning for the operands."""

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:
        """IEEE arithmetic: NaN and infinities come out as results, never as warnings."""
        del run_region
        with np.errstate(all="ignore"):
            return self.compute(call, operands)


class Rounded(Evaluated, Composite):
    """A composite computed at ``compute_type`` and rounded once at each result.

    Float operands come widened to the compute type into :meth:`expand` and :meth:`compute`; other operands as they are.
    """

    attributes: ClassVar[tuple[Attribute, ...]] = (COMPUTE_TYPE,)
    narrow: ClassVar[frozenset[int]] = frozenset()
    """Operands that come as they are: those of contractions, which widen products by themselves."""

    def _widens(self, index: int, operand: Value) -> bool:
        type_ = operand.type
        return isinstance(type_, TensorType) and type_.element.is_float and index not in self.narrow

    def compute_element(self, call: Call) -> ElementType:
        """The compute type of this call."""
        found = call.get("compute_type")
        return found if isinstance(found, ElementType) else widened(call.tensor(0).element)

    def check(self, call: Call) -> None:
        """The compute type must be a float where the operand is. Raises TypeMismatch, InvalidAttribute."""
        super().check(call)
        found = call.get("compute_type")
        if isinstance(found, ElementType) and not found.is_float:
            msg = f"{self.name}: compute_type is {found}; expected a floating-point type"
            raise TypeMismatch(msg)

    @abstractmethod
    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        """Build the formula on widened operands."""

    def decompose(self, op: Op, builder: Builder) -> Sequence[Value]:
        """Widen, compute, round."""
        call = op.call()
        element = self.compute_element(call)
        emit = Emit(builder)
        operands = [
            emit.cast(operand, element) if operand is not None and self._widens(index, operand) else operand
            for index, operand in enumerate(op.operands)
        ]
        results = self.expand(call, emit, operands)
        return [emit.cast(value, wanted.tensor.element) for value, wanted in zip(results, op.results, strict=True)]

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:
        """Widen, compute, round."""
        element = self.compute_element(call)
        wide = [
            convert(operand, element)
            if isinstance(operand, np.ndarray) and element_of(operand.dtype).is_float and index not in self.narrow
            else operand
            for index, operand in enumerate(map(_as_array, operands))
        ]
        results = super().evaluate(call, wide, run_region)
        with np.errstate(all="ignore"):
            return tuple(
                convert(np.asarray(result), _element(type_))
                for result, type_ in zip(results, self.infer(call), strict=True)
            )


def _as_array(operand: Any) -> Any:  # noqa: ANN401 - sequences stay lists
    return np.asarray(operand) if isinstance(operand, np.generic) else operand


def _element(type_: Type) -> ElementType:
    assert isinstance(type_, TensorType)
    return type_.element


class Pointwise(Rounded):
    """A composite of one float operand whose result has the operand's type."""

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The operand's type."""
        type_ = call.tensor(0)
        return (type_.with_element(type_.element),)

    @abstractmethod
    def formula(self, call: Call, emit: Emit, x: Value) -> Value:
        """The decomposition on the widened operand."""

    @abstractmethod
    def values(self, call: Call, x: Array) -> Array:
        """The value, computed directly at the compute type."""

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        """The formula on operand 0."""
        x = operands[0]
        assert x is not None
        return (self.formula(call, emit, x),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The value of operand 0."""
        return (self.values(call, operands[0]),)
