"""Random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler.exporters.onnx.emit import Emit
from compiler.exporters.onnx.forms import NoForm, exports, rewrites
from compiler.ir import F32, Call, Op, Value
from compiler.onnx_types import DATA_TYPES
from compiler.ops import sampling
from compiler.ops.compose import Emit as Compose
from compiler.ops.convert import Cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Builder


def _seed(call: Call) -> float | None:
    return None if call.get("seed") is None else call.number("seed")


def _drawn(op: Op, e: Emit, operator: str, **numbers: float) -> None:
    """A known shape is an attribute; another one is that of a tensor made for it."""
    call = op.call()
    shape = call.value(0)
    attributes: dict[str, Any] = {"dtype": DATA_TYPES[op.result.tensor.element], "seed": _seed(call), **numbers}
    if shape is not None:
        e.node(operator, [], [e.result_name(op.result)], shape=[int(size) for size in shape], **attributes)
        return
    like = e.new("ConstantOfShape", e.name(op.operand(0)))
    e.op(op, f"{operator}Like", like, **attributes)


@exports(sampling.RandomNormal)
def random_normal(op: Op, e: Emit) -> None:
    """Mean and standard deviation."""
    call = op.call()
    _drawn(op, e, "RandomNormal", mean=call.number("mean"), scale=call.number("scale"))


@exports(sampling.RandomUniform)
def random_uniform(op: Op, e: Emit) -> None:
    """Bounds."""
    call = op.call()
    _drawn(op, e, "RandomUniform", low=call.number("low"), high=call.number("high"))


def _drawn_wide(op: Op, builder: Builder) -> Sequence[Value]:
    """Numbers of float32, rounded."""
    if op.result.tensor.element is F32:
        raise NoForm("they are float32 already")
    attributes: dict[str, Any] = {**op.attributes, "to": F32}
    drawn = builder.op(op.definition, op.operands, **attributes).result
    return [builder(Cast, drawn, to=op.result.tensor.element)]


rewrites(sampling.RandomNormal, sampling.RandomUniform)(_drawn_wide)


@rewrites(sampling.Bernoulli)
def bernoulli_of_uniform(op: Op, builder: Builder) -> Sequence[Value]:
    """Whether a uniform number is below the probability."""
    emit, x = Compose(builder), op.operand(0)
    seed = {} if op.attributes.get("seed") is None else {"seed": op.attributes["seed"]}
    drawn = emit("random_uniform", emit("shape_of", x), low=0.0, high=1.0, to=F32, **seed)
    return [emit.cast(emit("lt", drawn, emit.cast(x, F32)), op.result.tensor.element)]


@exports(sampling.Bernoulli)
def bernoulli(op: Op, e: Emit) -> None:
    """Probabilities."""
    e.op(op, "Bernoulli", dtype=DATA_TYPES[op.result.tensor.element], seed=_seed(op.call()))


@exports(sampling.Multinomial)
def multinomial(op: Op, e: Emit) -> None:
    """Classes."""
    call = op.call()
    e.op(
        op,
        "Multinomial",
        dtype=DATA_TYPES[op.result.tensor.element],
        sample_size=call.integer("samples"),
        seed=_seed(call),
    )
