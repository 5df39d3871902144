"""Random numbers."""

from __future__ import annotations

from typing import Any

from compiler.exporters.onnx.emit import Emit
from compiler.exporters.onnx.forms import exports
from compiler.ir import Call, Op
from compiler.onnx_types import DATA_TYPES
from compiler.ops import sampling


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
