"""A naive interpreter of structured loops, point by point in plain Python.

It is written from the documentation of work.py alone and shares no code with the operators or the simulator.
"""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

from compiler.ir import F8E4M3FN, F16, F32, I8, I32, I64, U8, Kind, tensor, type_of
from compiler.ops.work import (
    SCALAR_FUNCTIONS,
    Access,
    Apply,
    Arg,
    Combiner,
    Index,
    Indirect,
    Iterator,
    IteratorKind,
    Literal,
    Loops,
    OutOfRange,
    Position,
    identity_access,
    nests,
    parallel,
)

# --- numbers


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def rounded(value, element):
    """A Python number as the nearest value of the element type; integers wrap."""
    if element.kind is Kind.BOOL:
        return bool(value)
    if element.is_integer:
        low = int(value) & ((1 << element.bits) - 1)
        signed = element.kind is Kind.SIGNED and low >> (element.bits - 1)
        return low - (1 << element.bits) if signed else low
    if element.kind is Kind.COMPLEX:
        return complex(np.complex128(value).astype(element.dtype))
    with np.errstate(all="ignore"):
        return float(np.float64(value).astype(element.dtype))


def number(item, element):
    """An element of an array as a Python number."""
    if element.kind is Kind.STRING:
        return item
    if element.kind is Kind.BOOL:
        return bool(item)
    if element.kind is Kind.COMPLEX:
        return complex(item)
    return int(item) if element.is_integer else float(item)


def float_to_integer(x, to):
    """As x86 converts: through 32 or 64 bits, everything outside the least integer."""
    width = 64 if to.bits == 64 else 32
    if math.isnan(x):
        return rounded(-(2 ** (width - 1)), to)
    if to.kind is Kind.UNSIGNED and to.bits == width and x >= 2.0 ** (width - 1):
        return rounded(float_to_signed(x - 2.0 ** (width - 1), width) ^ (1 << (width - 1)), to)
    return rounded(float_to_signed(x, width), to)


def float_to_signed(x, width):
    whole = math.trunc(x) if math.isfinite(x) else 2**80
    return whole if -(2 ** (width - 1)) <= whole < 2 ** (width - 1) else -(2 ** (width - 1))


def converted(value, to):
    if to.is_integer and isinstance(value, float):
        return float_to_integer(value, to)
    return rounded(value, to)


def saturated(value, to):
    if to.kind is Kind.BOOL:
        return bool(value)
    if to.is_integer:
        if isinstance(value, float) and math.isnan(value):
            return 0
        low, high = (0, 2**to.bits - 1) if to.kind is Kind.UNSIGNED else (-(2 ** (to.bits - 1)), 2 ** (to.bits - 1) - 1)
        if value in (math.inf, -math.inf):
            return high if value > 0 else low
        return min(max(math.trunc(value), low), high)
    greatest = float(ml_dtypes.finfo(to.dtype).max)
    return rounded(value if math.isnan(value) else min(max(value, -greatest), greatest), to)


def truncated_division(a, b):
    if isinstance(a, int):
        return 0 if b == 0 else int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))
    return np.divide(a, b)


def integer_power(a, b):
    if b >= 0:
        return pow(a, b, 2**64)  # every integer type wraps at a divisor of that
    return a ** (-b % 2 + 2) if abs(a) == 1 else 0


def shifted(a, b, element, *, left):
    if not 0 <= b < element.bits:
        return 0 if left or a >= 0 else -1
    return a << b if left else a >> b


NUMPY_F64 = {
    "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x, "exp": np.exp, "expm1": np.expm1, "log": np.log,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "erf": math.erf, "logistic": lambda x: 1 / (1 + np.exp(-x)), "atan2": np.arctan2,
}  # fmt: skip

PYTHON = {
    "neg": lambda x: -x, "abs": abs, "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": truncated_division,
    "mod": lambda a, b: (a % b if b else 0) if isinstance(a, int) else np.mod(a, b),
    "rem": lambda a, b: (a - b * truncated_division(a, b) if b else 0) if isinstance(a, int) else np.fmod(a, b),
    "pow": lambda a, b: integer_power(a, b) if isinstance(a, int) else np.float_power(a, b),
    "max": lambda a, b: math.nan if is_nan(a) or is_nan(b) else max(a, b),
    "min": lambda a, b: math.nan if is_nan(a) or is_nan(b) else min(a, b),
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "xor": lambda a, b: a != b, "not": lambda a: not a,
    "bitand": lambda a, b: a & b, "bitor": lambda a, b: a | b, "bitxor": lambda a, b: a ^ b, "bitnot": lambda a: ~a,
    "select": lambda condition, then, otherwise: then if condition else otherwise,
    "popcount": lambda a: a.bit_count(),
}  # fmt: skip


def apply(expression, operands):
    """A scalar function, its result rounded to the expression's element type."""
    function, element = expression.function, expression.element
    assert len(operands) == SCALAR_FUNCTIONS[function]
    if function == "cast":
        return converted(operands[0], element)
    if function == "cast_saturate":
        return saturated(operands[0], element)
    if function in ("shift_left", "shift_right"):
        return rounded(shifted(*operands, element, left=function == "shift_left"), element)
    if function == "bitcast":
        source = np.array(operands[0], expression.operands[0].element.dtype)
        return number(source.view(element.dtype), element)
    with np.errstate(all="ignore"):
        if function in NUMPY_F64:
            is_sign = function == "sign" and isinstance(operands[0], int)
            result = int(np.sign(operands[0])) if is_sign else float(NUMPY_F64[function](*map(np.float64, operands)))
        else:
            floats = any(isinstance(operand, float) for operand in operands) and function != "select"
            result = PYTHON[function](*(map(np.float64, operands) if floats else operands))
        return rounded(result, element)


def evaluate(expression, reads, point):
    if isinstance(expression, Arg):
        return reads[expression.index]
    if isinstance(expression, Literal):
        return rounded(expression.value, expression.element)
    if isinstance(expression, Position):
        return rounded(expression.scale * point[expression.iterator] + expression.offset, expression.element)
    return apply(expression, [evaluate(operand, reads, point) for operand in expression.operands])


# --- loops


class Dropped(Exception):
    """A data-dependent index that leaves its access out."""


def place(access, operands, point):
    """The element that an access means at a point."""
    found = []
    for dim in access.dims:
        if isinstance(dim, Index):
            found.append(dim.offset + sum(coefficient * point[loop] for loop, coefficient in dim.terms))
            continue
        assert isinstance(dim, Indirect)
        index = int(read(dim.index, operands, point))
        if dim.rule is OutOfRange.CLAMP:
            index = min(max(index, 0), dim.extent - 1)
        elif dim.rule is OutOfRange.WRAP:
            assert -dim.extent <= index < dim.extent, "index outside"
            index += dim.extent if index < 0 else 0
        elif not 0 <= index < dim.extent:
            raise Dropped
        found.append(index)
    return tuple(found)


def read(access, operands, point):
    array = operands[access.operand]
    element = type_of(array).element
    assert len(access.dims) == array.ndim
    try:
        where = place(access, operands, point)
    except Dropped:
        return rounded(access.fill, element)
    if all(0 <= index < size for index, size in zip(where, array.shape, strict=True)):
        return number(array[where], element)
    assert access.fill is not None, f"{where} is outside {array.shape}, and no fill is given"
    return rounded(access.fill, element)


JOIN = {
    Combiner.ADD: "add", Combiner.MUL: "mul", Combiner.MAX: "max", Combiner.MIN: "min",
    Combiner.AND: "and", Combiner.OR: "or", Combiner.XOR: "xor",
}  # fmt: skip


def better(combiner, new, old):
    """Whether a new body takes the place of the best so far."""
    last = combiner in (Combiner.ARGMAX_LAST, Combiner.ARGMIN_LAST)
    if is_nan(new) or is_nan(old):
        return is_nan(new) and (last or not is_nan(old))
    if new == old:
        return last
    return new > old if combiner in (Combiner.ARGMAX, Combiner.ARGMAX_LAST) else new < old


def run_nest(nest, operands, results):
    """One nest into ``results``: arrays of Python numbers, None where nothing is written yet, with their types."""
    array, element = results[nest.write.operand]
    accumulate = nest.accumulate or element
    kinds = [iterator.kind for iterator in nest.iterators]
    held: dict[tuple, object] = {}
    for point in itertools.product(*[range(extent) for extent in nest.extents]):
        body = evaluate(nest.body, [read(access, operands, point) for access in nest.reads], point)
        try:
            target = place(nest.write, operands, point)
        except Dropped:
            continue
        assert all(0 <= index < size for index, size in zip(target, array.shape, strict=True)), "write outside"
        if nest.combiner is None:
            array[target] = rounded(body, element) if element.kind is not Kind.STRING else body
        elif nest.combiner in JOIN:
            key = target
            if IteratorKind.SEQUENTIAL in kinds:
                key = tuple(i for i, kind in zip(point, kinds, strict=True) if kind is not IteratorKind.SEQUENTIAL)
            start = array[target] if nest.initial is None else nest.initial
            joined = apply(Apply(JOIN[nest.combiner], (None, None), accumulate), [held.get(key, start), body])
            held[key] = joined
            array[target] = rounded(joined, element)
        else:
            (along,) = [index for index, kind in enumerate(kinds) if kind is IteratorKind.REDUCTION]
            if target not in held or better(nest.combiner, body, held[target]):
                held[target] = body
                array[target] = point[along]


WIDEST = {
    Kind.SIGNED: np.int64, Kind.UNSIGNED: np.uint64, Kind.BOOL: np.bool_, Kind.FLOAT: np.float64,
    Kind.COMPLEX: np.complex128, Kind.STRING: object,
}  # fmt: skip


def run_work(work, operands, types):
    """All nests in order; every element of every result must have been written."""
    results = [(np.full(type_.shape, None, object), type_.element) for type_ in types]
    for nest in work:
        assert all(nest.extents), "an extent of 0"
        run_nest(nest, operands, results)
    arrays = []
    for (array, element), type_ in zip(results, types, strict=True):
        assert all(item is not None for item in array.reshape(-1)), "an element that nothing wrote"
        found = np.empty(type_.shape, WIDEST[element.kind])
        found.reshape(-1)[:] = array.reshape(-1).tolist()
        with np.errstate(all="ignore"):
            arrays.append(found.astype(element.dtype))
    return arrays


# --- tests of the interpreter itself


def matmul_nest(m, n, k):
    kinds = (IteratorKind.PARALLEL, IteratorKind.PARALLEL, IteratorKind.REDUCTION)
    a = Access(0, (Index(((0, 1),)), Index(((2, 1),))))
    b = Access(1, (Index(((2, 1),)), Index(((1, 1),))))
    body = Apply("mul", (Arg(0, F32), Arg(1, F32)), F32)
    iterators = tuple(Iterator(extent, kind) for extent, kind in zip((m, n, k), kinds, strict=True))
    return Loops(iterators, (a, b), body, identity_access(0, 2), Combiner.ADD, 0, F32)


def test_interpreter_multiplies_matrices():
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    (found,) = run_work((matmul_nest(2, 4, 3),), [a, b], [tensor(F32, (2, 4))])
    np.testing.assert_array_equal(found, a @ b)


def test_interpreter_refuses_elements_that_nothing_wrote():
    nest = Loops(parallel((2,)), (), Literal(1.0, F32), identity_access(0, 1))
    with pytest.raises(AssertionError, match="nothing wrote"):
        run_work((nest,), [], [tensor(F32, (3,))])


def test_interpreter_refuses_reads_outside_without_fill():
    read_beyond = Access(0, (Index(((0, 1),), 1),))
    nest = Loops(parallel((2,)), (read_beyond,), Arg(0, F32), identity_access(0, 1))
    with pytest.raises(AssertionError, match="outside"):
        run_work((nest,), [np.zeros(2, np.float32)], [tensor(F32, (2,))])


def test_interpreter_accumulates_in_the_wider_type():
    # 2048 + 1 is 2048 in float16; a float32 accumulator keeps the ones.
    x = np.array([2048, 1, 1], np.float16)
    along, read = (Iterator(3, IteratorKind.REDUCTION),), (identity_access(0, 1),)
    nest = Loops(along, read, Arg(0, F16), Access(0, ()), Combiner.ADD, 0)
    wide = Loops(nest.iterators, nest.reads, nest.body, nest.write, Combiner.ADD, 0, F32)
    assert float(run_work((nest,), [x], [tensor(F16)])[0]) == 2048
    assert float(run_work((wide,), [x], [tensor(F16)])[0]) == 2050


def test_interpreter_writes_prefixes_of_a_sequential_loop():
    access = identity_access(0, 1)
    nest = Loops((Iterator(4, IteratorKind.SEQUENTIAL),), (access,), Arg(0, I32), access, Combiner.ADD, 0)
    (found,) = run_work((nest,), [np.array([1, 2, 3, 4], np.int32)], [tensor(I32, (4,))])
    assert found.tolist() == [1, 3, 6, 10]


@pytest.mark.parametrize(
    ("rule", "expected"), [(OutOfRange.WRAP, [1, 0]), (OutOfRange.CLAMP, [1, 0])], ids=["wrap", "clamp"]
)
def test_interpreter_looks_up(rule, expected):
    x, index = np.array([0, 1], np.int32), np.array([1, -2], np.int64)
    access = Access(0, (Indirect(identity_access(1, 1), 2, rule),))
    nest = Loops(parallel((2,)), (access,), Arg(0, I32), identity_access(0, 1))
    assert run_work((nest,), [x, index], [tensor(I32, (2,))])[0].tolist() == expected


def test_interpreter_drops_writes_outside():
    index = np.array([1, 5], np.int64)
    fill = Loops(parallel((2,)), (), Literal(0, I32), identity_access(0, 1))
    write = Access(0, (Indirect(identity_access(0, 1), 2, OutOfRange.DROP),))
    mark = Loops(parallel((2,)), (), Literal(7, I32), write)
    assert run_work((fill, mark), [index], [tensor(I32, (2,))])[0].tolist() == [0, 7]


def test_integers_wrap_and_floats_round_to_even():
    assert rounded(200, I8) == -56
    assert rounded(-1, U8) == 255
    assert rounded(2049.0, F16) == 2048.0
    assert math.isnan(rounded(1e6, F8E4M3FN))
    assert saturated(1e6, F8E4M3FN) == 448.0
    assert float_to_integer(math.nan, I64) == -(2**63)


def test_nests_drops_parts_without_points():
    empty = Loops(parallel((2, 0)), (), Literal(0, I32), identity_access(0, 2))
    one = Loops((), (), Literal(0, I32), Access(0, ()))
    assert nests(empty, one) == (one,)
