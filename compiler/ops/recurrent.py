"""Recurrent networks with ONNX's meaning: RNN, GRU and LSTM in one or both directions over padded sequences.

Shapes, with T steps, B sequences, D directions, H the hidden size and G gates: x [T, B, I], w [D, G * H, I], r [D, G *
H, H], b [D, 2 * G * H], lengths [B], initial states [D, B, H]; results y [T, D, B, H] and last states [D, B, H]. With
``layout`` 1, x is [B, T, I], y [B, T, D, H] and states are [B, D, H]. A sequence's state stays as it is, and its y is
0, beyond its length; the reverse direction starts at its last element. ``clip`` bounds the sums that go into
activations; LSTM's cell state goes into its own unclipped, as in onnxruntime (the specification can be read both
ways).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import InvalidAttribute, TypeMismatch, UnsupportedType
from compiler.ir import I32, UNKNOWN, Call, Dim, Type, Value, tensor
from compiler.ops.compose import COMPUTE_TYPE, Emit, Rounded, padded
from compiler.ops.recurrent_activations import ACTIVATIONS, Applied, applied
from compiler.ops.registry import (
    FLAG,
    FLOAT,
    NUMBER,
    NUMBERS,
    Attribute,
    Domain,
    Operand,
    Variable,
    choice,
    integer,
    register,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array

_T: Final = Variable("T", FLOAT)
_OPERANDS: Final = (
    Operand("x", _T),
    Operand("w", _T),
    Operand("r", _T),
    Operand("b", _T, optional=True),
    Operand("lengths", Variable("L", frozenset({I32})), optional=True),
    Operand("initial_h", _T, optional=True),
)
_KNOWN: Final = Domain(
    f"names out of {', '.join(ACTIVATIONS)}",
    lambda value: isinstance(value, tuple) and all(str(name).lower() in ACTIVATIONS for name in value),
)
_ATTRIBUTES: Final = (
    Attribute("direction", choice("forward", "reverse", "bidirectional"), "forward", "Order of the steps."),
    Attribute("activations", _KNOWN, (), "One a function of the cell and direction; empty: the cell's usual ones."),
    Attribute("activation_alpha", NUMBERS, (), "Taken in order by the activations that have an alpha."),
    Attribute("activation_beta", NUMBERS, (), "Taken in order by the activations that have a beta."),
    Attribute("clip", NUMBER, None, "Bound on the inputs of activations; absent: none."),
    Attribute("layout", integer(0, 1), 0, "0: steps first; 1: batch first."),
    COMPUTE_TYPE,
)


@dataclass(frozen=True, slots=True)
class Cell:
    """What a step of the decomposition needs: the emitter, the hidden size, and weights of one direction.

    ``recurrent`` is r transposed, [H, G * H]; ``bias`` b [2 * G * H] where it is not yet in the projection of x.
    """

    emit: Emit
    hidden: int
    recurrent: Value
    bias: Value | None
    peepholes: Value | None
    functions: tuple[Applied, ...]
    call: Call

    def gates(self, value: Value, count: int, first: int = 0) -> list[Value]:
        """The column blocks ``first`` .. ``first + count - 1`` of [B, G * H], each [B, H]."""
        hidden = self.hidden
        return [self.emit.slice(value, 1, k * hidden, (k + 1) * hidden) for k in range(first, first + count)]

    def activate(self, index: int, value: Value) -> Value:
        """Function ``index`` of the cell on a clipped value."""
        if self.call.get("clip") is not None:
            bound = self.call.number("clip")
            value = self.emit("max", self.emit("min", value, bound), -bound)
        return self.functions[index].emit(self.emit, value)

    def vector(self, value: Value, block: int) -> Value:
        """Block ``block`` of H entries of a vector."""
        return self.emit.slice(value, 0, block * self.hidden, (block + 1) * self.hidden)


@dataclass(frozen=True, slots=True)
class ArrayCell:
    """The same for the evaluation, on arrays."""

    hidden: int
    recurrent: Array
    bias: Array
    peepholes: Array
    functions: tuple[Applied, ...]
    call: Call

    def gate(self, value: Array, block: int) -> Array:
        """Block ``block`` of the last dim."""
        return value[..., block * self.hidden : (block + 1) * self.hidden]

    def activate(self, index: int, value: Array) -> Array:
        """Function ``index`` of the cell on a clipped value."""
        if self.call.get("clip") is not None:
            bound = self.call.number("clip")
            value = np.clip(value, -bound, bound).astype(value.dtype)
        return self.functions[index].array(value).astype(value.dtype)


class Recurrent(Rounded):
    """Base: the scan over steps and directions; a subclass gives the cell."""

    gates: ClassVar[int]
    states: ClassVar[int] = 1
    usual: ClassVar[tuple[str, ...]]
    attributes: ClassVar[tuple[Attribute, ...]] = _ATTRIBUTES
    narrow: ClassVar[frozenset[int]] = frozenset({0, 1})

    @abstractmethod
    def emit_step(self, cell: Cell, x: Value, state: list[Value]) -> list[Value]:
        """The next state [B, H] each, the output first, from the projected element x [B, G * H]."""

    @abstractmethod
    def step(self, cell: ArrayCell, x: Array, state: list[Array]) -> list[Array]:
        """The same on arrays; x is projected and has no bias yet."""

    def bias_in_step(self, call: Call) -> bool:
        """Whether the step adds b itself, so that the projection must not."""
        del call
        return False

    def _directions(self, call: Call) -> tuple[bool, ...]:
        """For each direction, whether it runs backwards."""
        return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[call.text("direction")]

    def _functions(self, call: Call) -> list[tuple[Applied, ...]]:
        """The activations of each direction. Raises InvalidAttribute for a wrong number of names."""
        names = call.attributes["activations"] or self.usual * len(self._directions(call))
        assert isinstance(names, tuple)
        each = len(self.usual)
        if len(names) != each * len(self._directions(call)):
            msg = f"{self.name}: {len(names)} activations; expected {each} a direction"
            raise InvalidAttribute(msg)
        alphas, betas = call.numbers("activation_alpha"), call.numbers("activation_beta")
        found = applied([str(name) for name in names], alphas, betas)
        return [tuple(found[d * each : (d + 1) * each]) for d in range(len(self._directions(call)))]

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Raises TypeMismatch where the weights' sizes do not fit x, the gates or the directions."""
        x, w, r = call.tensor(0), call.tensor(1), call.tensor(2)
        for given in (x, w, r):
            if given.dims is not None and given.rank != 3:
                msg = f"{self.name}: operand {given} has rank {given.rank}; expected 3"
                raise TypeMismatch(msg)
        self._functions(call)
        directions, layout = len(self._directions(call)), call.integer("layout")
        if x.dims is None:
            return (tensor(x.element, None),) * (1 + self.states)
        steps, batch = x.dims[layout], x.dims[1 - layout]
        hidden: Dim = UNKNOWN if r.dims is None else r.dims[2]
        for given, expected in ((w, (directions, self.gates, x.dims[2])), (r, (directions, self.gates, hidden))):
            rows = expected[1] * hidden if isinstance(hidden, int) else UNKNOWN
            wanted = (expected[0], rows, expected[2])
            if given.dims is not None and not _compatible(given.dims, wanted):
                msg = f"{self.name}: weights {given} for x {x}; expected dims {list(wanted)}"
                raise TypeMismatch(msg)
        last = (directions, batch, hidden) if layout == 0 else (batch, directions, hidden)
        every = (steps, *last) if layout == 0 else (batch, steps, directions, hidden)
        return (tensor(x.element, every), *[tensor(x.element, last)] * self.states)

    def expand(self, call: Call, emit: Emit, operands: Sequence[Value | None]) -> Sequence[Value]:
        """One projection of all elements a direction, then the steps one after the other."""
        given = padded(operands, 8)
        x, layout = given[0], call.integer("layout")
        assert x is not None
        if layout:
            x = emit.transpose(x, (1, 0, 2))
        outputs, lasts = [], []
        for direction, backwards in enumerate(self._directions(call)):
            every, last = self._emit_direction(call, emit, x, given, direction, backwards=backwards)
            outputs.append(emit.unsqueeze(every, [1]))
            lasts.append([emit.unsqueeze(value, [0]) for value in last])
        y = emit.concat(outputs, 1)
        finals = [emit.concat([last[k] for last in lasts], 0) for k in range(self.states)]
        if layout:
            return (emit.transpose(y, (2, 0, 1, 3)), *(emit.transpose(final, (1, 0, 2)) for final in finals))
        return (y, *finals)

    def _emit_direction(
        self, call: Call, emit: Emit, x: Value, given: list[Value | None], direction: int, *, backwards: bool
    ) -> tuple[Value, list[Value]]:
        w, r, b = (self._emit_part(emit, given[index], direction, 0) for index in (1, 2, 3))
        assert w is not None
        assert r is not None
        steps, hidden = x.tensor.known_dims[0], r.tensor.shape[1]
        if not isinstance(steps, int) or steps == 0:
            msg = f"{self.name}: {steps} steps in {call.tensor(0)}; a decomposition needs their number"
            raise UnsupportedType(msg)
        projected = emit.contract("matmul", x, emit.transpose(w, (1, 0)), self.compute_element(call))
        if b is not None and not self.bias_in_step(call):
            width = self.gates * hidden
            both = emit("add", emit.slice(b, 0, 0, width), emit.slice(b, 0, width, 2 * width))
            projected = emit("add", projected, both)
        peepholes = self._emit_part(emit, given[7], direction, 0)
        functions = self._functions(call)[direction]
        cell = Cell(emit, hidden, emit.transpose(r, (1, 0)), b, peepholes, functions, call)
        state = [self._emit_initial(call, emit, x, given, direction, k, hidden) for k in range(self.states)]
        lengths = None if given[4] is None else emit.unsqueeze(given[4], [1])
        outputs: list[Value] = []
        for step in range(steps - 1, -1, -1) if backwards else range(steps):
            element = emit.squeeze(emit.slice(projected, 0, step, step + 1), [0])
            following = self.emit_step(cell, element, state)
            output = following[0]
            if lengths is not None:
                inside = emit("gt", lengths, step)
                output = emit("select", inside, output, 0.0)
                pairs = zip(following, state, strict=True)
                following = [emit("select", inside, after, before) for after, before in pairs]
            state = following
            outputs.append(emit.unsqueeze(output, [0]))
        return emit.concat(outputs[::-1] if backwards else outputs, 0), state

    @staticmethod
    def _emit_part(emit: Emit, value: Value | None, index: int, axis: int) -> Value | None:
        """One entry along ``axis``, without that dim."""
        return None if value is None else emit.squeeze(emit.slice(value, axis, index, index + 1), [axis])

    def _emit_initial(
        self, call: Call, emit: Emit, x: Value, given: list[Value | None], direction: int, state: int, hidden: int
    ) -> Value:
        found = self._emit_part(emit, given[5 + state], direction, call.integer("layout"))
        if found is not None:
            return found
        batch = x.tensor.known_dims[1]
        if not isinstance(batch, int):
            msg = f"{self.name}: batch size {batch} without initial states; a decomposition needs the number"
            raise UnsupportedType(msg)
        return emit.constant(np.zeros((batch, hidden), self.compute_element(call).dtype))

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The definition, step by step."""
        given = padded(operands, 8)
        x, layout = given[0], call.integer("layout")
        x, given[1] = (array.astype(self.compute_element(call).dtype, copy=False) for array in (x, given[1]))
        x = x.swapaxes(0, 1) if layout else x
        steps, batch, hidden = x.shape[0], x.shape[1], given[2].shape[2]
        directions, width = self._directions(call), self.gates * hidden
        y = np.zeros((steps, len(directions), batch, hidden), x.dtype)
        finals = [np.zeros((len(directions), batch, hidden), x.dtype) for _ in range(self.states)]
        for d, backwards in enumerate(directions):
            bias = np.zeros(2 * width, x.dtype) if given[3] is None else given[3][d]
            peepholes = np.zeros(3 * hidden, x.dtype) if given[7] is None else given[7][d]
            cell = ArrayCell(hidden, given[2][d].T, bias, peepholes, self._functions(call)[d], call)
            initial = [value.swapaxes(0, 1) if layout and value is not None else value for value in given[5:7]]
            state = [np.zeros((batch, hidden), x.dtype) if s is None else s[d] for s in initial[: self.states]]
            lengths = np.full(batch, steps) if given[4] is None else given[4]
            for t in reversed(range(steps)) if backwards else range(steps):
                inside = (t < lengths)[:, None]
                following = self.step(cell, x[t] @ given[1][d].T, state)
                y[t, d] = np.where(inside, following[0], 0)
                state = [np.where(inside, after, before) for after, before in zip(following, state, strict=True)]
            for final, value in zip(finals, state, strict=True):
                final[d] = value
        if layout:
            return (y.transpose(2, 0, 1, 3), *(final.swapaxes(0, 1) for final in finals))
        return (y, *finals)


def _compatible(found: Sequence[Dim], wanted: Sequence[Dim]) -> bool:
    return len(found) == len(wanted) and all(
        a == b or isinstance(a, str) or isinstance(b, str) for a, b in zip(found, wanted, strict=True)
    )


@register
class Rnn(Recurrent):
    """H' = f(x W^T + H R^T + Wb + Rb). Results: y, last H. Source: ONNX RNN-14."""

    name: ClassVar[str] = "rnn"
    operands: ClassVar[tuple[Operand, ...]] = _OPERANDS
    gates: ClassVar[int] = 1
    usual: ClassVar[tuple[str, ...]] = ("tanh",)

    def emit_step(self, cell: Cell, x: Value, state: list[Value]) -> list[Value]:
        emit = cell.emit
        return [cell.activate(0, emit("add", x, emit("matmul", state[0], cell.recurrent)))]

    def step(self, cell: ArrayCell, x: Array, state: list[Array]) -> list[Array]:
        width = cell.hidden
        return [cell.activate(0, x + state[0] @ cell.recurrent + cell.bias[:width] + cell.bias[width:])]


@register
class Gru(Recurrent):
    """Gates z, r = f(...), h = g(x W^T + (r * H) R^T + Rb + Wb), H' = (1 - z) * h + z * H. Results: y, last H.

    With ``linear_before_reset``, h = g(x W^T + r * (H R^T + Rb) + Wb). Source: ONNX GRU-14.
    """

    name: ClassVar[str] = "gru"
    operands: ClassVar[tuple[Operand, ...]] = _OPERANDS
    attributes: ClassVar[tuple[Attribute, ...]] = (
        *_ATTRIBUTES,
        Attribute("linear_before_reset", FLAG, False, "Reset what r gives, not what goes into it."),
    )
    gates: ClassVar[int] = 3
    usual: ClassVar[tuple[str, ...]] = ("sigmoid", "tanh")

    def bias_in_step(self, call: Call) -> bool:
        """With linear_before_reset the reset gate scales Rb."""
        return call.flag("linear_before_reset")

    def emit_step(self, cell: Cell, x: Value, state: list[Value]) -> list[Value]:
        emit, hidden, before = cell.emit, cell.hidden, state[0]
        if cell.call.flag("linear_before_reset"):
            recurrent = emit("matmul", before, cell.recurrent)
            if cell.bias is not None:
                width = 3 * hidden
                x = emit("add", x, emit.slice(cell.bias, 0, 0, width))
                recurrent = emit("add", recurrent, emit.slice(cell.bias, 0, width, 2 * width))
            parts = zip(cell.gates(x, 2), cell.gates(recurrent, 2), strict=True)
            z, r = (cell.activate(0, emit("add", a, b)) for a, b in parts)
            inner = emit("mul", r, cell.gates(recurrent, 1, 2)[0])
        else:
            gates = emit.slice(cell.recurrent, 1, 0, 2 * hidden)
            recurrent = emit("matmul", before, gates)
            parts = zip(cell.gates(x, 2), cell.gates(recurrent, 2), strict=True)
            z, r = (cell.activate(0, emit("add", a, b)) for a, b in parts)
            inner = emit("matmul", emit("mul", r, before), emit.slice(cell.recurrent, 1, 2 * hidden, 3 * hidden))
        candidate = cell.activate(1, emit("add", cell.gates(x, 1, 2)[0], inner))
        rest = emit("sub", emit.scalar(1, z.tensor.element), z)
        return [emit("add", emit("mul", rest, candidate), emit("mul", z, before))]

    def step(self, cell: ArrayCell, x: Array, state: list[Array]) -> list[Array]:
        before, width = state[0], 3 * cell.hidden
        w_bias, r_bias = cell.bias[:width], cell.bias[width:]
        both = x + before @ cell.recurrent + w_bias + r_bias
        z, r = cell.activate(0, cell.gate(both, 0)), cell.activate(0, cell.gate(both, 1))
        weights, own = cell.gate(cell.recurrent, 2), cell.gate(r_bias, 2)
        late = cell.call.flag("linear_before_reset")
        inner = r * (before @ weights + own) if late else (r * before) @ weights + own
        candidate = cell.activate(1, cell.gate(x, 2) + inner + cell.gate(w_bias, 2))
        return [(1 - z) * candidate + z * before]


@register
class Lstm(Recurrent):
    """Gates i, o, f = f(... + P * C), c = g(...), C' = f * C + i * c, H' = o * h(C'). Results: y, last H, last C.

    The peephole of o sees C', those of i and f see C; p is [D, 3 * H] in the order i, o, f. With ``input_forget``, f is
    1 - i. Source: ONNX LSTM-14.
    """

    name: ClassVar[str] = "lstm"
    operands: ClassVar[tuple[Operand, ...]] = (
        *_OPERANDS,
        Operand("initial_c", _T, optional=True),
        Operand("p", _T, optional=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (
        *_ATTRIBUTES,
        Attribute("input_forget", FLAG, False, "The forget gate is 1 - the input gate."),
    )
    gates: ClassVar[int] = 4
    states: ClassVar[int] = 2
    usual: ClassVar[tuple[str, ...]] = ("sigmoid", "tanh", "tanh")

    def emit_step(self, cell: Cell, x: Value, state: list[Value]) -> list[Value]:
        emit, (before, memory) = cell.emit, state

        def gate(value: Value, block: int, seen: Value) -> Value:
            if cell.peepholes is not None:
                value = emit("add", value, emit("mul", cell.vector(cell.peepholes, block), seen))
            return cell.activate(0, value)

        i, o, f, c = cell.gates(emit("add", x, emit("matmul", before, cell.recurrent)), 4)
        i = gate(i, 0, memory)
        coupled = cell.call.flag("input_forget")
        f = emit("sub", emit.scalar(1, i.tensor.element), i) if coupled else gate(f, 2, memory)
        kept = emit("add", emit("mul", f, memory), emit("mul", i, cell.activate(1, c)))
        return [emit("mul", gate(o, 1, kept), cell.functions[2].emit(emit, kept)), kept]

    def step(self, cell: ArrayCell, x: Array, state: list[Array]) -> list[Array]:
        before, memory = state
        width = 4 * cell.hidden
        gates = x + before @ cell.recurrent + cell.bias[:width] + cell.bias[width:]
        i = cell.activate(0, cell.gate(gates, 0) + cell.gate(cell.peepholes, 0) * memory)
        f = cell.activate(0, cell.gate(gates, 2) + cell.gate(cell.peepholes, 2) * memory)
        f = 1 - i if cell.call.flag("input_forget") else f
        kept = f * memory + i * cell.activate(1, cell.gate(gates, 3))
        o = cell.activate(0, cell.gate(gates, 1) + cell.gate(cell.peepholes, 1) * kept)
        return [o * cell.functions[2].array(kept), kept]
