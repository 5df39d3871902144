"""Recurrent networks: RNN, GRU, LSTM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ir import Definition
from compiler.ops.recurrent import Gru, Lstm, Rnn

if TYPE_CHECKING:
    from compiler.frontends.onnx.site import Converter

_DIRECTIONS: Final = {"forward": 1, "reverse": 1, "bidirectional": 2}

_CELLS: Final[dict[str, tuple[type[Definition], int, int, str | None]]] = {
    "GRU": (Gru, 2, 6, "linear_before_reset"),
    "LSTM": (Lstm, 3, 8, "input_forget"),
    "RNN": (Rnn, 1, 6, None),
}
"""ONNX operator -> the IR's operator, functions a direction, number of inputs, the cell's own flag."""


def _recurrent(definition: type[Definition], functions: int, count: int, flag: str | None) -> Converter:
    def convert(site: Site) -> Results:
        # The default of GRU-1 is misspelt in its schema.
        direction = site.attribute("direction").replace("foward", "forward")
        if direction not in _DIRECTIONS:
            site.bad_attribute(f"attribute 'direction' is '{direction}'; expected one of {', '.join(_DIRECTIONS)}")
        attributes: dict[str, Any] = {"direction": direction, "layout": site.attribute("layout") or 0}
        wanted = functions * _DIRECTIONS[direction]
        # RNN's schema names two functions by default, of which a single direction takes the first.
        names = (site.attribute("activations") or ())[:wanted]
        attributes["activations"] = tuple(name.lower() for name in names)
        for name in ("activation_alpha", "activation_beta"):
            attributes[name] = site.attribute(name) or ()
        if site.attribute("clip") is not None:
            attributes["clip"] = site.attribute("clip")
        if flag is not None:
            attributes[flag] = bool(site.attribute(flag))
        hidden, recurrent = site.attribute("hidden_size"), site.tensor(2).dims
        if hidden is not None and recurrent is not None and isinstance(recurrent[-1], int) and recurrent[-1] != hidden:
            site.bad_attribute(f"attribute 'hidden_size' is {hidden}, and the recurrent weight has {recurrent[-1]}")
        return site.b.op(definition, [site.optional(index) for index in range(count)], **attributes)

    return convert


for _name, (_definition, _functions, _count, _flag) in _CELLS.items():
    converts(_name)(_recurrent(_definition, _functions, _count, _flag))
