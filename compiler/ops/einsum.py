"""Einstein summation."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import InvalidAttribute, TypeMismatch, UnsupportedType
from compiler.ir import UNKNOWN, Builder, Call, Dim, Op, Type, Value, tensor
from compiler.ops.compose import COMPUTE_TYPE, Emit, Rounded
from compiler.ops.registry import NUMERIC, TEXT, Attribute, Operand, Variable, register
from compiler.ops.shapes import broadcast_pair

if TYPE_CHECKING:
    from collections.abc import Sequence

Labels = tuple[str, ...]

_TERM: Final = re.compile(r"[A-Za-z]*(\.\.\.[A-Za-z]*)?")


@dataclass(frozen=True, slots=True)
class Equation:
    """An equation for operands of known ranks: a label a dim.

    The dims of an ellipsis have the labels .0, .1, ... from the last one back, so that they broadcast as numpy's.
    """

    inputs: tuple[Labels, ...]
    output: Labels

    @classmethod
    def parse(cls, text: str, ranks: Sequence[int]) -> Equation:
        """The equation of ``text``. Without '->' the output is the ellipsis, then labels that stand once, in order.

        Raises InvalidAttribute where the text is no equation, TypeMismatch where it does not fit the ranks.
        """
        left, arrow, right = text.replace(" ", "").partition("->")
        terms = left.split(",")
        if len(terms) != len(ranks):
            msg = f"einsum: equation '{text}' has {len(terms)} terms; expected {len(ranks)}, one an operand"
            raise TypeMismatch(msg)
        for term in (*terms, right):
            if not _TERM.fullmatch(term):
                msg = f"einsum: term '{term}' of equation '{text}'; expected letters and at most one '...'"
                raise InvalidAttribute(msg)
        inputs = tuple(cls._labels(text, term, rank) for term, rank in zip(terms, ranks, strict=True))
        hidden = max((sum(label[0] == "." for label in labels) for labels in inputs), default=0)
        ellipsis = tuple(f".{k}" for k in reversed(range(hidden)))
        counts = Counter(label for labels in inputs for label in labels)
        if arrow:
            before, dots, after = right.partition("...")
            output = (*before, *(ellipsis if dots else ()), *after)
        else:
            output = (*ellipsis, *sorted(label for label, n in counts.items() if n == 1 and label[0] != "."))
        if len(set(output)) != len(output) or any(label not in counts for label in output):
            msg = f"einsum: output '{right}' of equation '{text}'; expected different labels of the inputs"
            raise InvalidAttribute(msg)
        return cls(inputs, output)

    @staticmethod
    def _labels(text: str, term: str, rank: int) -> Labels:
        before, dots, after = term.partition("...")
        hidden = rank - len(before) - len(after)
        if hidden < 0 or (hidden and not dots):
            msg = f"einsum: term '{term}' of equation '{text}' for an operand of rank {rank}; expected them to agree"
            raise TypeMismatch(msg)
        return (*before, *(f".{k}" for k in reversed(range(hidden))), *after)

    def needed_after(self, position: int) -> set[str]:
        """Labels that the output or operands after ``position`` have."""
        return set(self.output).union(*self.inputs[position + 1 :])

    @property
    def rounds_once(self) -> bool:
        """Whether one sum, over one product at most, is the whole computation."""
        if len(self.inputs) == 1:
            return True
        if len(self.inputs) > 2:
            return False
        first, second = map(set, self.inputs)
        return (first ^ second) <= set(self.output)


@register
class Einsum(Rounded):
    """Sums over the labels that the output lacks of products of the operands. Source: ONNX Einsum-12, numpy.einsum.

    An operand may repeat a label (its diagonal is taken), sizes of 1 broadcast, '...' stands for dims that broadcast.
    The decomposition contracts operand after operand, from the left, by dot_general or mul.
    """

    name: ClassVar[str] = "einsum"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", NUMERIC), variadic=True),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("equation", TEXT, doc="labels of each operand, and, behind '->', of the result"),
        COMPUTE_TYPE,
    )

    @staticmethod
    def _equation(call: Call) -> Equation:
        return Equation.parse(call.text("equation"), [call.tensor(index).rank for index in range(len(call.types))])

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Raises TypeMismatch where the sizes of a label differ and neither is 1."""
        if any(call.tensor(index).dims is None for index in range(len(call.types))):
            return (tensor(call.tensor(0).element, None),)
        equation = self._equation(call)
        sizes: dict[str, Dim] = {}
        for index, labels in enumerate(equation.inputs):
            for label, dim in zip(labels, call.tensor(index).known_dims, strict=True):
                joined = broadcast_pair(sizes.get(label, 1), dim)
                if joined is None:
                    msg = f"einsum: label '{label}' has size {dim} in operand {index}; expected {sizes[label]}"
                    raise TypeMismatch(msg)
                sizes[label] = joined
        return (tensor(call.tensor(0).element, [sizes.get(label, UNKNOWN) for label in equation.output]),)

    def decompose(self, op: Op, builder: Builder) -> Sequence[Value]:
        """Without casts where a single sum, which rounds once by itself, is all there is."""
        call = op.call()
        if self._equation(call).rounds_once and call.get("compute_type") is None:
            return self.expand(call, Emit(builder), op.operands)
        return super().decompose(op, builder)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        equation = self._equation(call)
        result: _Term | None = None
        for position, (value, labels) in enumerate(zip(operands, equation.inputs, strict=True)):
            assert value is not None
            term = _Term(emit, value, labels).with_diagonals()
            needed = equation.needed_after(position)
            result = term.summed(needed) if result is None else result.times(term, needed)
        assert result is not None
        return (result.summed(set(equation.output)).ordered(equation.output).value,)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """numpy.einsum."""
        equation = self._equation(call)
        numbers = {label: k for k, label in enumerate(dict.fromkeys(x for labels in equation.inputs for x in labels))}
        arguments: list[Any] = []
        for array, labels in zip(operands, equation.inputs, strict=True):
            arguments += [array, [numbers[label] for label in labels]]
        found = np.einsum(*arguments, [numbers[label] for label in equation.output], optimize=len(operands) > 2)
        return (np.asarray(found),)


@dataclass(frozen=True, slots=True)
class _Term:
    """A value under construction, with a label a dim."""

    emit: Emit
    value: Value
    labels: Labels

    def with_diagonals(self) -> _Term:
        """Each label once. The diagonal of [..., n, n] is every (n + 1)-th of the flattened [..., n * n]."""
        emit, value, labels = self.emit, self.value, self.labels
        while len(set(labels)) < len(labels):
            twice = next(label for label in labels if labels.count(label) > 1)
            first, second = [d for d, label in enumerate(labels) if label == twice][:2]
            rest = [d for d in range(len(labels)) if d not in {first, second}]
            sizes = value.tensor.shape
            n = sizes[first]
            if sizes[second] != n:
                msg = f"einsum: label '{twice}' has sizes {n} and {sizes[second]} in one operand; expected one size"
                raise UnsupportedType(msg)
            moved = emit.transpose(value, [*rest, first, second])
            flat = emit.reshape(moved, [*(sizes[d] for d in rest), n * n])
            places = [emit.integers([k]) for k in (0, n * n, len(rest), n + 1)]
            value = emit("slice", flat, *places)
            labels = (*(labels[d] for d in rest), twice)
        return _Term(emit, value, labels)

    def summed(self, needed: set[str]) -> _Term:
        """Summed over all other labels."""
        axes = [d for d, label in enumerate(self.labels) if label not in needed]
        value = self.emit.reduce("reduce_sum", self.value, axes, keep_dims=False)
        return _Term(self.emit, value, tuple(label for label in self.labels if label in needed))

    def ordered(self, labels: Labels) -> _Term:
        """Its labels in this order."""
        return _Term(self.emit, self.emit.transpose(self.value, [self.labels.index(x) for x in labels]), labels)

    def _without_broadcast(self, other: _Term) -> _Term:
        """Less the labels that it has with size 1 and ``other`` with another size."""
        sizes = dict(zip(other.labels, other.value.tensor.known_dims, strict=True))
        axes = [
            d
            for d, (label, dim) in enumerate(zip(self.labels, self.value.tensor.known_dims, strict=True))
            if dim == 1 and sizes.get(label, 1) != 1
        ]
        labels = tuple(label for d, label in enumerate(self.labels) if d not in axes)
        return _Term(self.emit, self.emit.squeeze(self.value, axes), labels)

    def times(self, other: _Term, needed: set[str]) -> _Term:
        """The product, summed over labels that are not needed any more."""
        a = self.summed(needed.union(other.labels))._without_broadcast(other)  # noqa: SLF001 - of the same class
        b = other.summed(needed.union(self.labels))._without_broadcast(self)  # noqa: SLF001
        # A label that broadcasting took from one side may be left to sum on the other.
        a, b = a.summed(needed.union(b.labels)), b.summed(needed.union(a.labels))
        shared = [label for label in a.labels if label in b.labels]
        contracted = [label for label in shared if label not in needed]
        if not contracted:
            return a._multiplied(b)  # noqa: SLF001
        batch = [label for label in shared if label in needed]
        value = self.emit(
            "dot_general",
            a.value,
            b.value,
            a_batch=a.places(batch),
            b_batch=b.places(batch),
            a_contract=a.places(contracted),
            b_contract=b.places(contracted),
        )
        free = [*(x for x in a.labels if x not in shared), *(x for x in b.labels if x not in shared)]
        return _Term(self.emit, value, (*batch, *free))

    def places(self, labels: Sequence[str]) -> tuple[int, ...]:
        """The dims of these labels."""
        return tuple(self.labels.index(label) for label in labels)

    def _multiplied(self, other: _Term) -> _Term:
        labels = (*self.labels, *(label for label in other.labels if label not in self.labels))
        aligned = [term._aligned(labels) for term in (self, other)]  # noqa: SLF001
        return _Term(self.emit, self.emit("mul", *aligned), labels)

    def _aligned(self, labels: Labels) -> Value:
        """The value with a dim for each of ``labels``, of size 1 where it has none."""
        present = tuple(label for label in labels if label in self.labels)
        missing = [d for d, label in enumerate(labels) if label not in self.labels]
        return self.emit.unsqueeze(self.ordered(present).value, missing)
