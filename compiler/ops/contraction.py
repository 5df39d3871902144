"""Contractions: sums of products over shared dims. Products and sums are taken at the accumulate type.

float16, bfloat16 and narrower floats accumulate in float32; integers in the result's type (attribute ``to``), wrapping.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir import UNKNOWN, Call, Dim, ElementType, TensorType, Type, tensor
from compiler.ops.compose import Evaluated, widened
from compiler.ops.registry import ELEMENT, NUMERIC, Attribute, Operand, Variable, integers, register
from compiler.ops.shapes import broadcast_dims, normalize_axes
from compiler.ops.windows import GROUPS, WINDOW, WindowPlan, window_view
from compiler.ops.work import Access, Apply, Arg, Combiner, Expression, Index, Iterator, IteratorKind, Loops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array
    from compiler.ops.work import Work

TO: Final = Attribute("to", ELEMENT, None, "Element type of the result; absent: the operands' type.")

_A = Variable("A", NUMERIC)
_B = Variable("B", NUMERIC)
_EXACT_BITS: Final = 53


def accumulate_type(result: ElementType) -> ElementType:
    """The element type in which a contraction with this result sums."""
    return widened(result)


def product(a: Array, b: Array, result: ElementType) -> Array:
    """The matrix product of [..., M, K] and [..., K, N], summed at the accumulate type, rounded to ``result``.

    Narrow integers go through float64 where every partial sum is exact there.
    """
    element = accumulate_type(result)
    if result.is_integer and a.dtype.itemsize <= 2 and b.dtype.itemsize <= 2:
        bits = 8 * (a.dtype.itemsize + b.dtype.itemsize)
        if a.shape[-1] << bits < 1 << _EXACT_BITS:
            exact = np.matmul(a.astype(np.float64), b.astype(np.float64))
            return np.asarray(exact.astype(np.int64).astype(result.dtype))
    wide = np.matmul(a.astype(element.dtype, copy=False), b.astype(element.dtype, copy=False))
    return np.asarray(wide.astype(result.dtype, copy=False))


def product_body(a: ElementType, b: ElementType, accumulate: ElementType) -> Expression:
    """mul(read 0, read 1), each cast to the accumulate type first."""

    def factor(index: int, element: ElementType) -> Expression:
        argument = Arg(index, element)
        return argument if element is accumulate else Apply("cast", (argument,), accumulate)

    return Apply("mul", (factor(0, a), factor(1, b)), accumulate)


class Contraction(Evaluated):
    """Base: two operands, and ``to``, the result's element type."""

    attributes: ClassVar[tuple[Attribute, ...]] = (TO,)

    def result_element(self, call: Call) -> ElementType:
        """``to``, else the operands' type."""
        found = call.get("to")
        return found if isinstance(found, ElementType) else call.tensor(0).element

    def check(self, call: Call) -> None:
        """Types are equal, or all integers with ``to`` given, or all floats. Raises TypeMismatch, InvalidAttribute."""
        super().check(call)
        a, b, to = call.tensor(0).element, call.tensor(1).element, call.get("to")
        if a is b and (to is None or to is a):
            return
        kinds = (a, b, to)
        integers_ = all(isinstance(kind, ElementType) and kind.is_integer for kind in kinds)
        floats = a is b and all(isinstance(kind, ElementType) and kind.is_float for kind in kinds)
        if not integers_ and not floats:
            msg = (
                f"{self.name}: element types {a} and {b}, to={to}; expected one type, or integers with an integer `to`"
            )
            raise TypeMismatch(msg)

    def loops(
        self, call: Call, iterators: Sequence[Iterator], reads: tuple[Access, Access], write: tuple[Index, ...]
    ) -> Work:
        """The nest that sums products of the two reads into the element at ``write``."""
        accumulate = accumulate_type(self.result_element(call))
        body = product_body(call.tensor(0).element, call.tensor(1).element, accumulate)
        return (Loops(tuple(iterators), reads, body, Access(0, write), Combiner.ADD, 0, accumulate),)


def _joined(name: str, a: Dim, b: Dim, what: str) -> None:
    if isinstance(a, int) and isinstance(b, int) and a != b:
        msg = f"{name}: {what} has size {a} in operand 0 and {b} in operand 1"
        raise TypeMismatch(msg)


@register
class MatMul(Contraction):
    """Matrix product [..., M, K] x [..., K, N] -> [..., M, N]; leading dims broadcast.

    A vector operand is a row ([K] as operand 0) or a column (as operand 1), and its dim of size 1 is dropped from the
    result: numpy.matmul's rule. Raises TypeMismatch for scalars and for sizes that differ.
    """

    name: ClassVar[str] = "matmul"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("a", _A), Operand("b", _B))

    def infer(self, call: Call) -> tuple[Type, ...]:
        a, b, element = call.tensor(0), call.tensor(1), self.result_element(call)
        if a.dims is None or b.dims is None:
            return (tensor(element, None),)
        if not a.dims or not b.dims:
            msg = f"matmul: operands {a} and {b}; expected ranks of at least 1"
            raise TypeMismatch(msg)
        column = b.dims[-2] if b.rank > 1 else b.dims[0]
        _joined("matmul", a.dims[-1], column, "the contracted dim")
        lead = broadcast_dims("matmul", [tensor(element, a.dims[:-2]), tensor(element, b.dims[:-2])])
        assert lead is not None
        rows = a.dims[-2:-1] if a.rank > 1 else ()
        columns = b.dims[-1:] if b.rank > 1 else ()
        return (tensor(element, (*lead, *rows, *columns)),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Parallel loops over the result, then one reduction loop."""
        result = results[0]
        assert isinstance(result, TensorType)
        a, b = call.shape(0), call.shape(1)
        reduction = result.rank
        rows, columns = int(len(a) > 1), int(len(b) > 1)
        batch = result.rank - rows - columns

        def lead(shape: tuple[int, ...]) -> list[Index]:
            sizes = shape[:-2]
            return [Index() if size == 1 else Index(((batch - len(sizes) + d, 1),)) for d, size in enumerate(sizes)]

        contracted = Index(((reduction, 1),))
        row = [Index(((batch, 1),))] if rows else []
        column = [Index(((batch + rows, 1),))] if columns else []
        reads = (Access(0, (*lead(a), *row, contracted)), Access(1, (*lead(b), contracted, *column)))
        iterators = [*map(Iterator, result.shape), Iterator(a[-1], IteratorKind.REDUCTION)]
        return self.loops(call, iterators, reads, tuple(Index(((d, 1),)) for d in range(result.rank)))

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """numpy.matmul at the accumulate type."""
        return (product(operands[0], operands[1], self.result_element(call)),)


@dataclass(frozen=True, slots=True)
class _Roles:
    """Which dims of the two operands of a dot_general are batch, contracted and free, in the order of the result."""

    a_batch: tuple[int, ...]
    b_batch: tuple[int, ...]
    a_contract: tuple[int, ...]
    b_contract: tuple[int, ...]
    a_free: tuple[int, ...]
    b_free: tuple[int, ...]

    @classmethod
    def of(cls, call: Call) -> _Roles:
        ranks = call.tensor(0).rank, call.tensor(1).rank
        found = {
            key: normalize_axes("dot_general", call.integers(key), ranks[key.startswith("b_")])
            for key in ("a_batch", "b_batch", "a_contract", "b_contract")
        }
        for side, other in (("a_batch", "b_batch"), ("a_contract", "b_contract")):
            if len(found[side]) != len(found[other]):
                msg = f"dot_general: {side} {found[side]} and {other} {found[other]}; expected equal numbers of dims"
                raise InvalidAttribute(msg)
        free = []
        for side, rank in zip("ab", ranks, strict=True):
            used = (*found[f"{side}_batch"], *found[f"{side}_contract"])
            if len(set(used)) != len(used):
                msg = f"dot_general: dims {used} of operand '{side}' are both batch and contracted"
                raise InvalidAttribute(msg)
            free.append(tuple(d for d in range(rank) if d not in used))
        return cls(*found.values(), *free)


@register
class DotGeneral(Contraction):
    """Contraction over any dims: the result has the batch dims, the free dims of ``a``, then those of ``b``.

    The meaning is StableHLO's dot_general. Raises TypeMismatch where paired sizes differ.
    """

    name: ClassVar[str] = "dot_general"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("a", _A), Operand("b", _B))
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("a_batch", integers(), (), "dims of a that pair with b_batch, one result dim each"),
        Attribute("b_batch", integers(), (), "dims of b"),
        Attribute("a_contract", integers(), (), "dims of a that pair with b_contract and are summed over"),
        Attribute("b_contract", integers(), (), "dims of b"),
        TO,
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        if call.tensor(0).dims is None or call.tensor(1).dims is None:
            return (tensor(self.result_element(call), None),)
        roles = _Roles.of(call)
        a, b = call.tensor(0).known_dims, call.tensor(1).known_dims
        pairs = [*zip(roles.a_batch, roles.b_batch, strict=True), *zip(roles.a_contract, roles.b_contract, strict=True)]
        for left, right in pairs:
            _joined("dot_general", a[left], b[right], f"dim {left} paired with dim {right}")
        batch = [
            b[right] if isinstance(b[right], int) else a[left]
            for left, right in zip(roles.a_batch, roles.b_batch, strict=True)
        ]
        dims = (*batch, *(a[d] for d in roles.a_free), *(b[d] for d in roles.b_free))
        return (tensor(self.result_element(call), dims),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Parallel loops over the result, then the reduction loops."""
        result = results[0]
        assert isinstance(result, TensorType)
        roles, a = _Roles.of(call), call.shape(0)
        parallel_count = result.rank
        loop_of_a = {d: i for i, d in enumerate((*roles.a_batch, *roles.a_free))}
        loop_of_b = {d: i for i, d in enumerate(roles.b_batch)}
        loop_of_b |= {d: len(loop_of_a) + i for i, d in enumerate(roles.b_free)}
        loop_of_a |= {d: parallel_count + i for i, d in enumerate(roles.a_contract)}
        loop_of_b |= {d: parallel_count + i for i, d in enumerate(roles.b_contract)}
        reads = (
            Access(0, tuple(Index(((loop_of_a[d], 1),)) for d in range(len(a)))),
            Access(1, tuple(Index(((loop_of_b[d], 1),)) for d in range(call.tensor(1).rank))),
        )
        reductions = [Iterator(a[d], IteratorKind.REDUCTION) for d in roles.a_contract]
        write = tuple(Index(((d, 1),)) for d in range(parallel_count))
        return self.loops(call, [*map(Iterator, result.shape), *reductions], reads, write)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """One batched matrix product of the operands with their dims put in order."""
        a, b = operands
        roles = _Roles.of(call)

        def sizes(array: Array, dims: tuple[int, ...]) -> list[int]:
            return [array.shape[d] for d in dims]

        batch, rows = sizes(a, roles.a_batch), sizes(a, roles.a_free)
        columns, depth = sizes(b, roles.b_free), int(np.prod(sizes(a, roles.a_contract), initial=1))
        m, n = int(np.prod(rows, initial=1)), int(np.prod(columns, initial=1))
        left = a.transpose((*roles.a_batch, *roles.a_free, *roles.a_contract)).reshape(*batch, m, depth)
        right = b.transpose((*roles.b_batch, *roles.b_contract, *roles.b_free)).reshape(*batch, depth, n)
        return (product(left, right, self.result_element(call)).reshape((*batch, *rows, *columns)),)


@register
class Conv(Contraction):
    """Convolution (cross-correlation) of x [N, C, *S] with w [M, C / groups, *K] -> [N, M, *O].

    Padding is zeros; group g of the M outputs sees group g of the C inputs; no bias (add it). The rule of the sizes is
    ONNX Conv's. Raises TypeMismatch where ranks, channels or groups do not fit.
    """

    name: ClassVar[str] = "conv"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _A), Operand("w", _B))
    attributes: ClassVar[tuple[Attribute, ...]] = (*WINDOW, GROUPS, TO)

    def infer(self, call: Call) -> tuple[Type, ...]:
        x, w, element = call.tensor(0), call.tensor(1), self.result_element(call)
        if x.dims is None or w.dims is None:
            return (tensor(element, None),)
        if x.rank != w.rank or x.rank < 2:
            msg = f"conv: x {x} and w {w}; expected equal ranks of at least 2"
            raise TypeMismatch(msg)
        groups, channels, inner, outputs = call.integer("groups"), x.dims[1], w.dims[1], w.dims[0]
        if isinstance(inner, int):
            _joined("conv", channels, inner * groups, f"the channel dim with {groups} groups")
        if isinstance(outputs, int) and outputs % groups:
            msg = f"conv: {outputs} output channels in {groups} groups; expected a multiple"
            raise TypeMismatch(msg)
        kernel = [dim for dim in w.dims[2:] if isinstance(dim, int)]
        if len(kernel) != w.rank - 2:
            return (tensor(element, (x.dims[0], outputs, *[UNKNOWN] * (x.rank - 2))),)
        return (tensor(element, (x.dims[0], outputs, *WindowPlan.of("conv", call, kernel).dims(x.dims[2:]))),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Loops n, group, output channel in the group, windows; reductions: channel in the group, window positions."""
        del results
        x, w, groups = call.shape(0), call.shape(1), call.integer("groups")
        windows = WindowPlan.of("conv", call, w[2:]).windows(x[2:])
        spatial, outputs, inner = len(windows), w[0] // groups, w[1]
        channel, first = 3 + spatial, 4 + spatial
        iterators = [
            *map(Iterator, (x[0], groups, outputs, *(window.count for window in windows))),
            Iterator(inner, IteratorKind.REDUCTION),
            *(Iterator(window.kernel, IteratorKind.WINDOW) for window in windows),
        ]
        places = [window.index(3 + d, first + d) for d, window in enumerate(windows)]
        output = Index(((1, outputs), (2, 1)))
        reads = (
            Access(0, (Index(((0, 1),)), Index(((1, inner), (channel, 1))), *places), fill=0),
            Access(1, (output, Index(((channel, 1),)), *(Index(((first + d, 1),)) for d in range(spatial)))),
        )
        write = (Index(((0, 1),)), output, *(Index(((3 + d, 1),)) for d in range(spatial)))
        return self.loops(call, iterators, reads, write)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """A matrix product a group of the window view."""
        x, w = operands
        groups, spatial = call.integer("groups"), x.ndim - 2
        windows = WindowPlan.of("conv", call, w.shape[2:]).windows(x.shape[2:])
        counts = [window.count for window in windows]
        inner, outputs = w.shape[1], w.shape[0] // groups
        taps = int(np.prod(w.shape[2:], initial=1))
        view = window_view(x, windows, 0).reshape(x.shape[0], groups, inner, *counts, *w.shape[2:])
        order = (0, 1, 2, *range(3 + spatial, 3 + 2 * spatial), *range(3, 3 + spatial))
        points = int(np.prod(counts, initial=1))
        columns = view.transpose(order).reshape(x.shape[0], groups, inner * taps, points)
        rows = w.reshape(groups, outputs, inner * taps)
        flat = product(rows, columns, self.result_element(call))
        return (flat.reshape(x.shape[0], groups * outputs, *counts),)
