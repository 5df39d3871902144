"""LSTM and RNN, step by step: a cont of 0 starts a new sequence in the middle of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compiler.frontends.caffe.site import Site, converts
from compiler.ir import Value
from compiler.ops.contraction import MatMul
from compiler.ops.elementwise import Add, Logistic, Mul, Tanh
from compiler.ops.movement import Concat


@dataclass(frozen=True, slots=True)
class _Sequence:
    """The bottoms of a recurrent layer, and what its input weights make of them: one value a step.

    Bottoms are x [T, N, ...], cont [T, N], a static input [N, ...] if the layer has one, and with ``expose_hidden``
    the states before the first step, each [1, N, D].
    """

    site: Site
    steps: int
    batch: int
    outputs: int
    cont: tuple[Value, ...]
    inputs: tuple[Value, ...]
    states: tuple[Value, ...]
    next_blob: int

    def product(self, state: Value, what: str, index: int, rows: int) -> Value:
        """A state times weights [rows, D]."""
        weights = self.site.blob(index, what, (rows, self.outputs))
        return self.site.b(MatMul, state, self.site.b.constant(np.ascontiguousarray(weights.T)))

    def joined(self, steps: Sequence[Value]) -> Value:
        """Values [N, D], one a step, as [T, N, D]."""
        whole = [self.site.reshape(step, (1, self.batch, self.outputs)) for step in steps]
        return whole[0] if len(whole) == 1 else self.site.b(Concat, *whole, axis=0)


def _projected(site: Site, value: Value, rows: int, index: int, what: str, gates: int) -> Value:
    """[rows, K] times weights [gates, K]."""
    depth = int(np.prod(site.sizes(value), dtype=np.int64)) // rows
    weights = site.b.constant(np.ascontiguousarray(site.blob(index, what, (gates, depth)).T))
    return site.b(MatMul, site.reshape(value, (rows, depth)), weights)


def _read(site: Site, gates: int, states: int) -> _Sequence:
    found, dims = site.parameters("recurrent_param"), site.dims()
    if found.num_output < 1 or len(dims) < 2 or site.dims(1) != dims[:2]:
        site.invalid(
            f"num_output {found.num_output}, x {list(dims)} and cont {list(site.dims(1))}; expected a positive number, "
            "[steps, batch, ...] and [steps, batch]"
        )
    steps, batch, outputs = dims[0], dims[1], int(found.num_output)
    exposed = states if found.expose_hidden else 0
    has_static = len(site.inputs) == 3 + exposed
    if len(site.inputs) != 2 + has_static + exposed:
        site.invalid(f"{len(site.inputs)} bottoms; expected x, cont, perhaps a static input, and {exposed} states")
    whole = _projected(site, site.inputs[0], steps * batch, 0, "weights of x", gates * outputs)
    whole = site.b(Add, whole, site.weight(1, "bias", (gates * outputs,)))
    inputs = [site.cut(whole, 0, step * batch, (step + 1) * batch) for step in range(steps)]
    if has_static:
        fixed = _projected(site, site.inputs[2], batch, 2, "weights of the static input", gates * outputs)
        inputs = [site.b(Add, step, fixed) for step in inputs]
    cont = [site.reshape(site.cut(site.inputs[1], 0, step, step + 1), (batch, 1)) for step in range(steps)]
    zero = site.b.constant(np.zeros((batch, outputs), np.float32))
    given = site.inputs[len(site.inputs) - exposed :] if exposed else ()
    first = [site.reshape(state, (batch, outputs)) for state in given] or [zero] * states
    return _Sequence(site, steps, batch, outputs, tuple(cont), tuple(inputs), tuple(first), 3 if has_static else 2)


def _tops(sequence: _Sequence, result: Value, states: Sequence[Value]) -> Sequence[Value]:
    site = sequence.site
    if not site.parameters("recurrent_param").expose_hidden:
        return [result]
    return [result, *(site.reshape(state, (1, sequence.batch, sequence.outputs)) for state in states)]


@converts("LSTM", least=2, greatest=5)
def lstm(site: Site) -> Sequence[Value]:
    """Gates in the order i, f, o, g; weights of x [4D, K], bias [4D], of a static input [4D, K'], of h [4D, D]."""
    sequence = _read(site, 4, 2)
    hidden, cell = sequence.states
    size, results = sequence.outputs, []
    for cont, projected in zip(sequence.cont, sequence.inputs, strict=True):
        kept = site.b(Mul, hidden, cont)
        gates = site.b(Add, projected, sequence.product(kept, "weights of h", sequence.next_blob, 4 * size))
        parts = [site.cut(gates, 1, gate * size, (gate + 1) * size) for gate in range(4)]
        enter, forget, leave = (site.b(Logistic, part) for part in parts[:3])
        stays = site.b(Mul, site.b(Mul, forget, cont), cell)
        cell = site.b(Add, stays, site.b(Mul, enter, site.b(Tanh, parts[3])))
        hidden = site.b(Mul, leave, site.b(Tanh, cell))
        results.append(hidden)
    return _tops(sequence, sequence.joined(results), (hidden, cell))


@converts("RNN", least=2, greatest=4)
def rnn(site: Site) -> Sequence[Value]:
    """h = tanh(W_hh h + W_xh x + b_h), o = tanh(W_ho h + b_o): weights of x, bias, (static), of h, of o, bias of o."""
    sequence = _read(site, 1, 1)
    (hidden,) = sequence.states
    size, blob, results = sequence.outputs, sequence.next_blob, []
    bias = site.weight(blob + 2, "bias of the output", (size,))
    for cont, projected in zip(sequence.cont, sequence.inputs, strict=True):
        kept = site.b(Mul, hidden, cont)
        hidden = site.b(Tanh, site.b(Add, projected, sequence.product(kept, "weights of h", blob, size)))
        output = site.b(Add, sequence.product(hidden, "weights of the output", blob + 1, size), bias)
        results.append(site.b(Tanh, output))
    return _tops(sequence, sequence.joined(results), (hidden,))
