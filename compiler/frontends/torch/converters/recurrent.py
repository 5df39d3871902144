"""Recurrent networks: layers and directions of LSTM, GRU and plain cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from compiler.frontends.torch.converters.common import concat, cut, rank_of, reshape, swap, transpose, unsqueeze
from compiler.frontends.torch.site import Site, converts
from compiler.ir import Value
from compiler.ops.recurrent import Gru, Lstm, Rnn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.frontends.torch.site import Converter
    from compiler.ir import Definition


@dataclass(frozen=True, slots=True)
class _Cell:
    """An IR operator, the places of its gates among torch's, and its own attributes."""

    definition: type[Definition]
    gates: tuple[int, ...]
    attributes: tuple[tuple[str, Any], ...] = ()


_CELLS: Final = {
    # torch has input, forget, cell, output; the IR input, output, forget, cell.
    "lstm": _Cell(Lstm, (0, 3, 1, 2)),
    # torch has reset, update, new; the IR update, reset, new.
    "gru": _Cell(Gru, (1, 0, 2), (("linear_before_reset", True),)),
    "rnn_tanh": _Cell(Rnn, (0,), (("activations", ("tanh",)),)),
    "rnn_relu": _Cell(Rnn, (0,), (("activations", ("relu",)),)),
}


def _reordered(site: Site, weight: Value, gates: Sequence[int]) -> Value:
    """The rows of a weight in the IR's order of gates, with a dim for the direction in front."""
    size = site.size(weight, 0) // len(gates)
    parts = [cut(site, weight, 0, gate * size, (gate + 1) * size) for gate in gates]
    return unsqueeze(site, concat(site, parts, 0) if len(gates) > 1 else weight, (0,))


def _layer(
    site: Site, cell: _Cell, x: Value, weights: Sequence[Sequence[Value]], states: Sequence[Value]
) -> list[Value]:
    """One layer of one or two directions: outputs [S, N, directions * H] and last states."""
    stacked = [
        concat(site, [_reordered(site, direction[place], cell.gates) for direction in weights], 0) for place in (0, 1)
    ]
    bias = None
    if len(weights[0]) > 2:
        halves = [concat(site, [_reordered(site, one[place], cell.gates) for one in weights], 0) for place in (2, 3)]
        bias = concat(site, halves, 1)
    attributes: dict[str, Any] = dict(cell.attributes)
    if len(weights) > 1:
        attributes["direction"] = "bidirectional"
        if "activations" in attributes:
            attributes["activations"] *= 2
    operands = [x, stacked[0], stacked[1], bias, None, *states]
    y, *last = site.b.op(cell.definition, operands, **attributes).results
    steps, directions, batch, hidden = y.tensor.known_dims
    del steps, batch
    outputs = transpose(site, y, (0, 2, 1, 3))
    merged = (
        reshape(site, outputs, [*outputs.tensor.known_dims[:2], int(directions) * int(hidden)])
        if (outputs.tensor.is_static)
        else _joined(site, outputs)
    )
    return [merged, *last]


def _joined(site: Site, outputs: Value) -> Value:
    from compiler.frontends.torch.converters.common import reshape_to, shape_of

    directions, hidden = (site.size(outputs, axis) for axis in (2, 3))
    shape = concat(site, [shape_of(site, outputs, 0, 2), site.integers(directions * hidden)], 0)
    return reshape_to(site, outputs, site.folded(shape))


def _recurrent(cell: _Cell) -> Converter:
    def convert(site: Site) -> list[Value]:
        if site["train"] and site["dropout"]:
            site.refuse("dropout between layers, which is random", "dropout")
        x, batch_first = site.value("input"), site["batch_first"]
        unbatched = rank_of(x) == 2
        states = site["hx"] if isinstance(site["hx"], list) else [site["hx"]]
        if unbatched:
            x, states = unsqueeze(site, x, (1,)), [unsqueeze(site, state, (1,)) for state in states]
        elif batch_first:
            x = swap(site, x, 0, 1)
        params = list(site["params"])
        directions = 2 if site["bidirectional"] else 1
        each = len(params) // (site["num_layers"] * directions)
        if each not in (2, 4) or each != (4 if site["has_biases"] else 2):
            site.refuse("projections of the hidden state", "params")
        finals: list[list[Value]] = []
        for layer in range(site["num_layers"]):
            first = layer * directions
            weights = [params[(first + d) * each : (first + d + 1) * each] for d in range(directions)]
            own = [cut(site, state, 0, first, first + directions) for state in states]
            x, *last = _layer(site, cell, x, weights, own)
            finals.append(last)
        lasts = [concat(site, [final[index] for final in finals], 0) for index in range(len(states))]
        if unbatched:
            from compiler.frontends.torch.converters.common import squeeze

            return [squeeze(site, value, (1,)) for value in (x, *lasts)]
        return [swap(site, x, 0, 1) if batch_first else x, *lasts]

    return convert


for _name, _cell in _CELLS.items():
    converts(f"{_name}.input")(_recurrent(_cell))


def _single(cell: _Cell) -> Converter:
    def convert(site: Site) -> Value | list[Value]:
        """One step of one layer."""
        from compiler.frontends.torch.converters.common import squeeze

        x = site.value("input")
        states = site["hx"] if isinstance(site["hx"], list) else [site["hx"]]
        names = [name for name in ("w_ih", "w_hh", "b_ih", "b_hh") if site.get(name) is not None]
        weights = [[site.value(name) for name in names]]
        batched = rank_of(x) == 2
        x, states = (unsqueeze(site, x, (0,)), [unsqueeze(site, state, (0,)) for state in states])
        if not batched:
            x, states = unsqueeze(site, x, (1,)), [unsqueeze(site, state, (1,)) for state in states]
        last = [
            squeeze(site, value, (0,) if batched else (0, 1)) for value in _layer(site, cell, x, weights, states)[1:]
        ]
        return last if len(last) > 1 else last[0]

    return convert


for _name, _overload in (
    ("lstm", "lstm_cell"),
    ("gru", "gru_cell"),
    ("rnn_tanh", "rnn_tanh_cell"),
    ("rnn_relu", "rnn_relu_cell"),
):
    converts(_overload)(_single(_CELLS[_name]))
