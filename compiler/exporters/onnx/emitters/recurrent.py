"""Recurrent networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.exporters.onnx.emit import Emit
from compiler.exporters.onnx.forms import exports
from compiler.ir import Definition, Op
from compiler.ops import recurrent
from compiler.ops.compose import known_sizes

if TYPE_CHECKING:
    from compiler.exporters.onnx.forms import Form

_CELLS: Final[dict[type[Definition], tuple[str, str | None]]] = {
    recurrent.Gru: ("GRU", "linear_before_reset"),
    recurrent.Lstm: ("LSTM", "input_forget"),
    recurrent.Rnn: ("RNN", None),
}
_SPELLED: Final = {
    name.lower(): name
    for name in (
        "Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
        "Softsign", "Softplus",
    )
}  # fmt: skip


def _cell(operator: str, flag: str | None) -> Form:
    def emit(op: Op, e: Emit) -> None:
        call = op.call()
        names = call.attributes["activations"]
        assert isinstance(names, tuple)
        e.op(
            op,
            operator,
            direction=call.text("direction"),
            activations=[_SPELLED[str(name).lower()] for name in names] or None,
            activation_alpha=call.numbers("activation_alpha") or None,
            activation_beta=call.numbers("activation_beta") or None,
            clip=call.get("clip"),
            layout=call.integer("layout") or None,
            hidden_size=known_sizes(call.tensor(2), (2,))[0],
            **({} if flag is None else {flag: int(call.flag(flag))}),
        )

    return emit


for _definition, (_operator, _flag) in _CELLS.items():
    exports(_definition)(_cell(_operator, _flag))
