"""Every canonical rule on random graphs that match it: outputs before and after are held to the rule's class.

Data is drawn with NaN, infinities, -0.0, denormals and the least integers; shapes with sizes 0 and 1 and broadcasting.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.ir import (
    BF16,
    BOOL,
    C64,
    F16,
    F32,
    F64,
    I8,
    I32,
    I64,
    U8,
    Builder,
    Graph,
    attributes_key,
    clone_graph,
    tensor,
    verify,
)
from compiler.ops import compare, convert, elementwise, logic, movement, padding, reshape
from compiler.ops.interpreter import interpret
from compiler.passes.canonical import arithmetic, conversion
from compiler.passes.canonical import movement as moves
from compiler.passes.canonicalize import RULES, Canonicalize
from compiler.rewrite import EXACT, RewriteCounter, RuleSet, rewrite

DETERMINISTIC = settings(derandomize=True, deadline=None, max_examples=25)

FLOATS = (F32, F16, F64, BF16)
SIGNED = (I8, I32, I64)
ONE = np.array(1, np.float32)
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 0.5, 1e-45, 6e-8, -3.5, 65504.0, 3e38)


class Case:
    """Builds one graph and its inputs by drawing."""

    def __init__(self, draw):
        self.draw = draw
        self.graph = Graph()
        self.build = Builder(self.graph)
        self.inputs = []
        self.random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def pick(self, *options):
        return self.draw(st.sampled_from(options))

    def shape(self, rank=None, low=0):
        rank = self.draw(st.integers(0, 3)) if rank is None else rank
        return tuple(self.draw(st.integers(low, 3)) for _ in range(rank))

    def array(self, element, shape):
        if element is BOOL:
            return self.random.integers(0, 2, shape) > 0
        if element.is_integer:
            info = np.iinfo(element.dtype)
            values = self.random.choice([0, 1, -1, 2, 7, info.min, info.max, info.max - 1], shape)
            return np.asarray(values).astype(element.dtype)
        values = np.asarray(self.random.choice(SPECIAL, shape))
        if element is C64:
            values = values + 1j * self.random.choice(SPECIAL, shape)
        with np.errstate(all="ignore"):
            return np.asarray(values).astype(element.dtype)

    def input(self, element, shape):
        self.inputs.append(self.array(element, shape))
        return self.graph.add_input(tensor(element, shape))

    def constant(self, value, element, shape=()):
        return self.build.constant(np.full(shape, value).astype(element.dtype))

    def vector(self, *values):
        return self.build.constant(np.array(values, np.int64))

    def narrowed(self, shape):
        """A shape that broadcasts to ``shape`` without growing it."""
        kept = shape[self.draw(st.integers(0, len(shape))) :]
        return tuple(self.pick(1, size) for size in kept)


GENERATORS = {}


def generator(rule):
    def enter(function):
        GENERATORS[rule.name] = (rule, function)
        return function

    return enter


@generator(arithmetic.identity_element)
def _(case):
    definition, elements = case.pick(
        (elementwise.Add, (*FLOATS, *SIGNED)),
        (elementwise.Sub, (*FLOATS, *SIGNED)),
        (elementwise.Mul, (*FLOATS, *SIGNED)),
        (elementwise.Div, (*FLOATS, *SIGNED)),
        (elementwise.Pow, FLOATS),
        (elementwise.Max, (*FLOATS, *SIGNED)),
        (elementwise.Min, (*FLOATS, *SIGNED)),
        (logic.And, (BOOL,)),
        (logic.Xor, (BOOL,)),
        (logic.BitAnd, SIGNED),
        (logic.BitOr, SIGNED),
    )
    element, shape = case.pick(*elements), case.shape(low=1)
    wanted = definition.instance().identity_element(element)
    e = case.build.constant(np.full(case.narrowed(shape), np.array(wanted).astype(element.dtype)))
    x = case.input(element, shape)
    swap = definition.commutative and case.pick(True, False)
    return case.build(definition, *((e, x) if swap else (x, e)))


@generator(arithmetic.involution)
def _(case):
    definition, element, attributes = case.pick(
        (elementwise.Neg, F32, {}), (elementwise.Neg, I8, {}), (logic.Not, BOOL, {}), (logic.BitNot, I32, {}),
        (movement.Reverse, F16, {"axes": (0, 1)}),
    )  # fmt: skip
    x = case.input(element, case.shape(2))
    return case.build(definition, case.build(definition, x, **attributes), **attributes)


@generator(arithmetic.idempotent)
def _(case):
    definition = case.pick(
        elementwise.Abs, elementwise.Floor, elementwise.Ceil, elementwise.Round, elementwise.Trunc, elementwise.Sign
    )
    return case.build(definition, case.build(definition, case.input(case.pick(*FLOATS), case.shape())))


@generator(arithmetic.with_itself)
def _(case):
    definition, element = case.pick((elementwise.Max, F32), (elementwise.Min, I8), (logic.And, BOOL), (logic.Or, BOOL))
    x = case.input(element, case.shape())
    return case.build(definition, x, x)


def two(case, *elements):
    element, shape = case.pick(*elements), case.shape()
    return case.input(element, shape), case.input(element, case.narrowed(shape))


@generator(arithmetic.subtract_negated)
def _(case):
    x, y = two(case, *FLOATS, *SIGNED, C64)
    return case.build(elementwise.Sub, x, case.build(elementwise.Neg, y))


@generator(arithmetic.add_negated)
def _(case):
    x, y = two(case, *FLOATS, *SIGNED, C64)
    return case.build(elementwise.Add, x, case.build(elementwise.Neg, y))


@generator(arithmetic.times_minus_one)
def _(case):
    element, shape = case.pick(*FLOATS, *SIGNED), case.shape(low=1)
    return case.build(elementwise.Mul, case.input(element, shape), case.constant(-1, element, case.narrowed(shape)))


@generator(arithmetic.times_negated)
def _(case):
    x, y = two(case, *FLOATS, *SIGNED)
    return case.build(elementwise.Mul, case.build(elementwise.Neg, x), case.build(elementwise.Neg, y))


@generator(arithmetic.abs_of_negated)
def _(case):
    return case.build(elementwise.Abs, case.build(elementwise.Neg, case.input(case.pick(*FLOATS, I8), case.shape())))


@generator(arithmetic.divide_by_power_of_two)
def _(case):
    element, shape = case.pick(*FLOATS), case.shape()
    divisors = case.random.choice([2.0, -2.0, 0.25, 8192.0, -(2.0**-13)], case.narrowed(shape) or (1,))
    divisors = divisors if divisors.size else np.array([2.0])
    return case.build(
        elementwise.Div, case.input(element, shape or (1,)), case.build.constant(divisors.astype(element.dtype))
    )


@generator(arithmetic.regroup_constants)
def _(case):
    definition, element = case.pick(
        (elementwise.Add, I8), (elementwise.Mul, I32), (elementwise.Max, I64), (logic.Xor, BOOL), (logic.BitAnd, U8)
    )
    shape = case.shape()
    a, b = case.build.constant(case.array(element, shape)), case.build.constant(case.array(element, ()))
    return case.build(definition, b, case.build(definition, case.input(element, shape), a))


@generator(arithmetic.negated_comparison)
def _(case):
    definition, element = case.pick(
        (compare.Eq, F32), (compare.Ne, F16), (compare.Lt, I8), (compare.Ge, I32), (compare.Gt, I64), (compare.Le, I8)
    )
    shape = case.shape()
    compared = case.build(definition, case.input(element, shape), case.input(element, case.narrowed(shape)))
    return case.build(logic.Not, compared)


@generator(arithmetic.select_equal)
def _(case):
    shape = case.shape()
    x = case.input(case.pick(F32, I8, BOOL), shape)
    return case.build(compare.Select, case.input(BOOL, case.narrowed(shape)), x, x)


@generator(arithmetic.select_decided)
def _(case):
    shape = case.shape()
    a, b = case.input(F32, shape), case.input(F32, shape)
    return case.build(compare.Select, case.constant(case.pick(True, False), BOOL), a, b)


@generator(arithmetic.select_negated)
def _(case):
    shape = case.shape()
    a, b = case.input(F32, shape), case.input(F32, case.narrowed(shape))
    return case.build(compare.Select, case.build(logic.Not, case.input(BOOL, shape)), a, b)


@generator(conversion.cast_to_same)
def _(case):
    element = case.pick(F32, I8, BOOL)
    return case.build(convert.Cast, case.input(element, case.shape()), to=element)


@generator(conversion.cast_chain)
def _(case):
    source, middle, to, saturate = case.pick(
        (F16, F32, F16, False), (BF16, F32, F16, False), (F16, F64, BF16, True), (I8, I32, U8, False),
        (I8, F32, F16, False), (BOOL, I32, F16, False), (I32, F64, I32, False), (U8, I64, I8, False),
        (F16, F32, I8, True), (I8, F32, I64, False), (F32, F64, BOOL, False), (U8, I64, BF16, False),
    )  # fmt: skip
    wide = case.build(convert.Cast, case.input(source, case.shape()), to=middle)
    return case.build(convert.Cast, wide, to=to, saturate=saturate)


@generator(conversion.bitcast_to_same)
def _(case):
    return case.build(convert.BitCast, case.input(F32, case.shape()), to=F32)


@generator(conversion.bitcast_chain)
def _(case):
    to = case.pick(F32, I32)
    return case.build(convert.BitCast, case.build(convert.BitCast, case.input(F32, case.shape()), to=I32), to=to)


def permutation(case, rank):
    return tuple(case.draw(st.permutations(range(rank))))


@generator(moves.transpose_nothing)
def _(case):
    shape = case.shape()
    return case.build(movement.Transpose, case.input(F32, shape), permutation=tuple(range(len(shape))))


@generator(moves.transpose_twice)
def _(case):
    inner = case.build(movement.Transpose, case.input(F32, case.shape(3)), permutation=permutation(case, 3))
    return case.build(movement.Transpose, inner, permutation=permutation(case, 3))


@generator(moves.transpose_to_reshape)
def _(case):
    shape, order = case.pick(((1, 3, 2), (1, 0, 2)), ((1, 0, 1), (2, 1, 0)), ((2, 3, 1), (0, 2, 1)), ((1, 1), (1, 0)))
    return case.build(movement.Transpose, case.input(F32, shape), permutation=order)


@generator(moves.transposes_joined)
def _(case):
    shape, order = case.shape(3), permutation(case, 3)
    x, y = (case.build(movement.Transpose, case.input(F32, shape), permutation=order) for _ in range(2))
    return case.build(case.pick(elementwise.Sub, compare.Lt), x, y)


@generator(moves.transpose_around)
def _(case):
    inner = case.build(movement.Transpose, case.input(F32, case.shape(3)), permutation=permutation(case, 3))
    scalar = case.constant(2, F32)
    value = case.pick(
        lambda: case.build(elementwise.Neg, inner),
        lambda: case.build(convert.Cast, inner, to=F16),
        lambda: case.build(elementwise.Sub, scalar, inner),
        lambda: case.build(elementwise.Div, inner, scalar),
    )()
    return case.build(movement.Transpose, value, permutation=permutation(case, 3))


@generator(moves.reshape_nothing)
def _(case):
    shape = case.shape(2)
    return case.build(reshape.Reshape, case.input(F32, shape), case.vector(*shape))


@generator(moves.reshape_twice)
def _(case):
    x = case.input(F32, case.pick((2, 3), (0, 6), (6, 1)))
    inner = case.build(reshape.Unsqueeze, x, case.vector(0))
    return case.build(
        reshape.Reshape, inner, case.vector(*case.pick((-1,), (1, -1, 1)) if 0 not in x.type.shape else (0,))
    )


@generator(moves.reshapings_joined)
def _(case):
    inner = case.build(reshape.Reshape, case.input(F32, (2, 3)), case.vector(3, 1, 2))
    definition, axis = case.pick((reshape.Squeeze, 1), (reshape.Unsqueeze, -1))
    return case.build(definition, inner, case.vector(axis))


@generator(moves.slice_nothing)
def _(case):
    shape = case.shape(2)
    x = case.input(F32, shape)
    return case.build(movement.Slice, x, case.vector(0), case.vector(2**31), case.vector(1), case.vector(1))


@generator(moves.concat_nothing)
def _(case):
    parts = [case.input(F32, (0, 2)), case.input(F32, (case.pick(0, 2), 2)), case.input(F32, (1, 2))]
    return case.build(movement.Concat, *parts[: case.pick(1, 2, 3)], axis=case.pick(0, -2))


@generator(moves.concat_of_concat)
def _(case):
    axis = case.pick(0, 1)
    a, b, c = (case.input(F32, (2, 2)) for _ in range(3))
    return case.build(movement.Concat, a, case.build(movement.Concat, b, c, axis=axis), axis=case.pick(axis, axis - 2))


@generator(moves.concat_of_split)
def _(case):
    axis = case.pick(0, 1, -1)
    split = case.build.op(movement.Split, [case.input(F32, (3, 3))], axis=axis, outputs=case.pick(1, 2, 3))
    return case.build(movement.Concat, *split.results, axis=axis)


@generator(moves.split_nothing)
def _(case):
    return case.build(movement.Split, case.input(F32, case.shape(2)), outputs=1)


@generator(moves.pad_nothing)
def _(case):
    return case.build(
        padding.Pad, case.input(F32, case.shape(2)), case.vector(0, 0, 0, 0), mode=case.pick("constant", "edge")
    )


@generator(moves.broadcast_nothing)
def _(case):
    shape = case.shape(2)
    return case.build(movement.BroadcastTo, case.input(F32, shape), case.vector(*case.narrowed(shape)))


@generator(moves.tile_once)
def _(case):
    return case.build(movement.Tile, case.input(F32, case.shape(2)), case.vector(1, 1))


@generator(moves.reverse_nothing)
def _(case):
    return case.build(movement.Reverse, case.input(F32, (case.pick(0, 1), 3)), axes=case.pick((), (0,), (-2,)))


@generator(moves.implicit_broadcast)
def _(case):
    shape = case.shape(2)
    wide = case.build(movement.BroadcastTo, case.input(F32, case.narrowed(shape)), case.vector(*shape))
    operands = (wide, case.input(F32, shape))
    return case.build(
        case.pick(elementwise.Sub, elementwise.Mul), *(operands if case.pick(True, False) else operands[::-1])
    )


@pytest.mark.parametrize("name", [rule.name for rule in RULES.rules])
@DETERMINISTIC
@given(data=st.data())
def test_rule_keeps_the_numbers(name, data):
    rule, make = GENERATORS[name]
    case = Case(data.draw)
    case.build.output(make(case))
    verify(case.graph)
    before = interpret(case.graph, case.inputs)
    result = rewrite(case.graph, RuleSet([rule]))
    verify(case.graph)
    assert result.hits[name] >= 1
    after = interpret(case.graph, case.inputs)
    assert rule.numerics is EXACT
    for old, new in zip(before, after, strict=True):
        assert rule.numerics.holds(np.asarray(old), np.asarray(new)), (old, new)


@DETERMINISTIC
@given(data=st.data())
def test_all_rules_together_come_to_an_end(data):
    case = Case(data.draw)
    values = [
        make(case)
        for _, make in data.draw(st.lists(st.sampled_from(list(GENERATORS.values())), min_size=3, max_size=6))
    ]
    case.build.output(*values)
    before = interpret(clone_graph(case.graph), case.inputs)
    Canonicalize().run(case.graph, RewriteCounter())
    verify(case.graph)
    for old, new in zip(before, interpret(case.graph, case.inputs), strict=True):
        assert EXACT.holds(np.asarray(old), np.asarray(new))
    assert not Canonicalize().run(case.graph, RewriteCounter()).modified


def unchanged(element, shape, make):
    graph = Graph("main", [tensor(element, shape)])
    build = Builder(graph)
    build.output(make(build, graph.inputs[0]))
    before = [(op.definition, op.operands, attributes_key(op.attributes)) for op in graph.ops]
    Canonicalize().run(graph, RewriteCounter())
    return before == [(op.definition, op.operands, attributes_key(op.attributes)) for op in graph.ops]


def transposed(build, value):
    return build(movement.Transpose, value, permutation=(1, 0))


def cast(build, value, *types, **attributes):
    for to in types:
        value = build(convert.Cast, value, to=to, **attributes)
    return value


@pytest.mark.parametrize(
    ("element", "shape", "make"),
    [
        (F32, (2,), lambda b, x: b(elementwise.Add, x, b.constant(np.float32(0.0)))),  # -0.0 would stay
        (F32, (2,), lambda b, x: b(elementwise.Add, x, b.constant(np.float32(1e-10)))),
        (F32, (2,), lambda b, x: b(elementwise.Mul, x, b.constant(np.float32(0.0)))),  # NaN would go
        (F32, (2,), lambda b, x: b(elementwise.Mul, x, b.constant(np.ones((3, 1), np.float32)))),  # broadcasts
        (F32, ("?",), lambda b, x: b(elementwise.Mul, x, b.constant(np.ones(3, np.float32)))),
        (F32, (2,), lambda b, x: b(elementwise.Div, x, b.constant(np.float32(3)))),
        (F32, (2,), lambda b, x: cast(b, x, F16, F32)),
        (F32, (2,), lambda b, x: cast(b, x, I64, F32)),
        (I64, (2,), lambda b, x: cast(b, x, F64, I64)),
        (I32, (2,), lambda b, x: cast(b, x, F64, BF16)),
        (F16, (2,), lambda b, x: cast(b, x, F32, I8)),
        (U8, (2,), lambda b, x: cast(b, x, I8, I32)),
        (C64, (2,), lambda b, x: b(elementwise.Mul, x, b.constant(np.complex64(1)))),
        (U8, (2,), lambda b, x: b(elementwise.Abs, b(elementwise.Neg, x))),  # |-1| is 255
        (F32, (2,), lambda b, x: b(logic.Not, b(compare.Lt, x, b.constant(np.float32(1))))),  # NaN
        (F32, (2,), lambda b, x: b(elementwise.Add, b(elementwise.Add, x, b.constant(ONE)), b.constant(ONE))),
        (F32, (2, 3), lambda b, x: b(movement.Slice, x, *[b.constant(np.array([v])) for v in (-1, -9, 0, -1)])),
        (F32, (2, 3), lambda b, x: b(movement.Transpose, x, permutation=(1, 0))),
        (F32, (3, 3), lambda b, x: transposed(b, b(elementwise.Sub, x, transposed(b, x)))),
        (F32, ("?", "?"), lambda b, x: b(reshape.Reshape, x, b.constant(np.array([-1, 3])))),
        (F32, (2, 3), lambda b, x: b(movement.Reverse, b(movement.Reverse, x, axes=(0,)), axes=(1,))),
    ],
)  # fmt: skip
def test_what_is_not_exact_stays(element, shape, make):
    assert unchanged(element, shape, make)


@pytest.mark.parametrize(
    ("source", "wide", "expected"),
    [
        (F16, F32, True), (BF16, F16, False), (BF16, F32, True), (F32, F64, True), (F64, F32, False),
        (I8, F16, True), (I32, F32, False), (I32, F64, True), (I64, F64, False), (U8, I8, False), (I8, U8, False),
        (I8, BF16, True), (BOOL, BF16, True), (F16, BF16, False), (F32, C64, False),
    ],
)  # fmt: skip
def test_lossless_conversions(source, wide, expected):
    assert conversion.lossless(source, wide) is expected
