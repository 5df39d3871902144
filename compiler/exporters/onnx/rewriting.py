"""Ways round a missing form: other operations of the IR that give the same results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compiler.exporters.onnx.forms import NoForm, rewrites_of
from compiler.ir import BF16, F16, F32, I8, I16, I32, U8, U16, Builder, ElementType, Graph, TensorType
from compiler.ops import Composite, activation, compare, elementwise, reduce
from compiler.ops.compose import Rounded
from compiler.ops.convert import Cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler.exporters.onnx.emit import Emit
    from compiler.exporters.onnx.forms import Rewrite
    from compiler.ir import Definition, Op, Value

_FLOATS: Final = dict.fromkeys((F16, BF16), F32)
_INTEGERS: Final = dict.fromkeys((I8, I16, U8, U16), I32)
_WRAPPING: Final[frozenset[Definition]] = frozenset(
    definition.instance()
    for definition in (
        activation.Relu,
        compare.Eq,
        compare.Ge,
        compare.Gt,
        compare.Le,
        compare.Lt,
        compare.Select,
        elementwise.Abs,
        elementwise.Add,
        elementwise.Clamp,
        elementwise.Div,
        elementwise.Max,
        elementwise.Min,
        elementwise.Mod,
        elementwise.Mul,
        elementwise.Neg,
        elementwise.Rem,
        elementwise.Sub,
        reduce.ArgMax,
        reduce.ArgMin,
        reduce.CumSum,
        reduce.ReduceMax,
        reduce.ReduceMin,
        reduce.ReduceSum,
    )
)
"""Integer operators whose result in a narrow type is that in a wide one with the high bits cut off, as casts do."""


def ways_round(op: Op) -> Iterator[Rewrite]:
    """Rewrites in the order to try them: those for the operator, a wider type, the definition of a composite."""
    yield from rewrites_of(op.definition)
    yield widened
    definition = op.definition
    if isinstance(definition, Composite):
        yield definition.decompose


def widened(op: Op, builder: Builder) -> Sequence[Value]:
    """The operation in float32 or int32, with its results cast back: for floats at least as accurate, else exact.

    Raises NoForm where the operation is to compute in a type of its own.
    """
    if op.regions or (isinstance(op.definition, Rounded) and op.definition.compute_element(op.call()) is not F32):
        raise NoForm("it computes in a type of its own")
    wider = _INTEGERS if op.definition in _WRAPPING and _elements(op.operands) & _INTEGERS.keys() else _FLOATS
    if not _elements(op.operands) & wider.keys():
        raise NoForm("it has no form in a wider type")
    operands = [_cast(builder, operand, wider) for operand in op.operands]
    attributes: dict[str, Any] = {
        name: wider.get(value, value) if isinstance(value, ElementType) else value
        for name, value in op.attributes.items()
    }
    inner = builder.op(op.definition, operands, **attributes)
    return [
        value
        if value.type == original.type or not isinstance(original.type, TensorType)
        else builder(Cast, value, to=original.type.element)
        for value, original in zip(inner.results, op.results, strict=True)
    ]


def _elements(values: Sequence[Value | None]) -> set[ElementType]:
    return {value.type.element for value in values if value is not None and isinstance(value.type, TensorType)}


def _cast(builder: Builder, value: Value | None, wider: dict[ElementType, ElementType]) -> Value | None:
    if value is None or not isinstance(value.type, TensorType) or value.type.element not in wider:
        return value
    return builder(Cast, value, to=wider[value.type.element])


def rebuilt(op: Op, way: Rewrite, e: Emit) -> tuple[Graph, Sequence[Value]]:
    """What ``way`` makes of the operation, in a graph whose inputs have the names of the operands."""
    graph = Graph("decomposition")
    builder = Builder(graph, location=op.location)
    operands: list[Value | None] = []
    for operand in op.operands:
        if operand is None:
            operands.append(None)
        elif operand.op is not None and operand.op.definition.holds_constant:
            operands.append(builder.constant(operand.op.call().constant("value")))
        else:
            operands.append(graph.add_input(operand.type))
            e.bind(graph.inputs[-1], e.name(operand))
    attributes: dict[str, Any] = dict(op.attributes)
    whole = builder.op(op.definition, operands, **attributes)
    for result, original in zip(whole.results, op.results, strict=True):
        result.type = original.type
    values = way(whole, builder)
    whole.erase()
    return graph, values
