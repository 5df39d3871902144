"""Scalar functions against float64 and Python's integers; conversions against their definitions."""

import math

import ml_dtypes
import numpy as np
import pytest

from compiler.ir import BF16, BOOL, F8E4M3FN, F16, F32, I2, I4, I8, I16, I32, I64, U4, U8, U32, U64
from compiler.ops.work import SCALAR_FUNCTIONS
from compiler.simulator.convert import convert, pack, saturate, unpack
from compiler.simulator.functions import FUNCTIONS

FLOATS = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.7, -3.7, 1e-3, 88.0, -88.0, 1e-40, 1e30, np.inf, -np.inf, np.nan],
    np.float32,
)

EXACT = {
    "exp": math.exp, "expm1": math.expm1, "log": math.log, "log1p": math.log1p, "sin": math.sin, "cos": math.cos,
    "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan, "sinh": math.sinh, "cosh": math.cosh,
    "tanh": math.tanh, "asinh": math.asinh, "acosh": math.acosh, "atanh": math.atanh, "erf": math.erf,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x), "reciprocal": lambda x: 1 / x, "logistic": lambda x: 1 / (1 + math.exp(-x)),
    "neg": lambda x: -x, "abs": abs, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "round": round,
}  # fmt: skip


def apply(name, operands, element):
    with np.errstate(all="ignore"):
        return FUNCTIONS[name].compute([np.asarray(operand) for operand in operands], element)


def test_every_function_of_the_instruction_set_is_there():
    assert FUNCTIONS.keys() == SCALAR_FUNCTIONS.keys()


@pytest.mark.parametrize("element", [F32, F16, BF16], ids=str)
@pytest.mark.parametrize("name", EXACT)
def test_unary_functions_are_rounded_once(name, element):
    with np.errstate(over="ignore"):
        values = FLOATS[np.isfinite(FLOATS)].astype(element.dtype)
    values = values[np.isfinite(values.astype(np.float32))]
    found = apply(name, [values], element)
    assert found.dtype == element.dtype
    for value, got in zip(values.astype(np.float64).tolist(), found.astype(np.float64).tolist(), strict=True):
        try:
            exact = EXACT[name](value)
        except (ValueError, ZeroDivisionError, OverflowError):
            continue
        with np.errstate(over="ignore"):
            wanted = float(np.float64(exact).astype(element.dtype))
        if not math.isfinite(wanted):
            assert got == wanted
            continue
        # Half an ulp for a result that lies so near to the middle that float32's own error decides (16-bit types).
        step = (
            float(np.spacing(np.abs(np.asarray(wanted, element.dtype)))) if element is not BF16 else abs(wanted) / 128
        )
        assert got == wanted or abs(got - wanted) <= (0 if element is F32 else step), (value, got, wanted)


@pytest.mark.parametrize(
    "name", sorted(EXACT.keys() - {"sqrt", "rsqrt", "log", "log1p", "asin", "acos", "acosh", "atanh"})
)
def test_special_values_do_not_raise(name):
    assert apply(name, [FLOATS], F32).shape == FLOATS.shape
    assert np.isnan(apply(name, [FLOATS], F32)[-1])


def test_rounding_goes_to_the_even_neighbour():
    assert apply("round", [np.float32([0.5, 1.5, 2.5, -0.5])], F32).tolist() == [0, 2, 2, 0]
    assert np.signbit(apply("round", [np.float32([-0.5])], F32))[0]


INTEGERS = [(-7, 2), (7, -2), (-7, -2), (7, 2), (-128, -1), (5, 0), (0, 3), (127, 127), (-1, 7)]


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("mul", lambda a, b: a * b),
        ("div", lambda a, b: int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b)) if b else 0),
        ("mod", lambda a, b: a % b if b else 0), ("rem", lambda a, b: int(math.fmod(a, b)) if b else 0),
        ("max", max), ("min", min), ("bitand", lambda a, b: a & b), ("bitor", lambda a, b: a | b),
        ("bitxor", lambda a, b: a ^ b),
    ],
)  # fmt: skip
def test_integer_arithmetic_wraps_and_divides_as_c_does(name, meaning):
    a, b = (np.array(side, np.int8) for side in zip(*INTEGERS, strict=True))
    wanted = [(meaning(x, y) + 128) % 256 - 128 for x, y in INTEGERS]
    assert apply(name, [a, b], I8).tolist() == wanted


def test_integer_powers_wrap_and_truncate():
    a, b = np.array([2, 3, -1, -1, 2, 0], np.int32), np.array([10, -1, -3, -2, 40, 0], np.int32)
    assert apply("pow", [a, b], I32).tolist() == [1024, 0, -1, 1, 0, 1]


def test_an_exponent_keeps_the_width_of_its_own_type():
    """2^(2^32 + 1) is 0 in 32 bits; 2^1, the low half of the exponent, is 2."""
    exponents = np.array([3, 2**32 + 1], np.uint64)
    assert apply("pow", [np.array([2, 2], np.int32), exponents], I32).tolist() == [8, 0]


def test_shifts_beyond_the_width_and_bits():
    assert apply("shift_right", [np.int8([-8, -8, 8]), np.int8([1, 9, 9])], I8).tolist() == [-4, -1, 0]
    assert apply("shift_left", [np.uint8([1, 1]), np.uint8([7, 8])], U8).tolist() == [128, 0]
    assert apply("popcount", [np.int8([-1, 0, 5])], I8).tolist() == [8, 0, 2]
    assert apply("bitnot", [np.uint8([0, 255])], U8).tolist() == [255, 0]
    assert apply("bitcast", [np.float32([1.0])], I32).tolist() == [0x3F800000]
    assert apply("bitcast", [np.int32([0x3F800000])], F32).tolist() == [1.0]


def test_predicates_and_logic():
    assert apply("lt", [FLOATS, np.float32(0)], BOOL).tolist() == (FLOATS < 0).tolist()
    assert apply("isnan", [FLOATS.astype(BF16.dtype)], BOOL).tolist() == np.isnan(FLOATS).tolist()
    assert apply("eq", [np.array([1, -1], I4.dtype), np.array([1, 1], I4.dtype)], BOOL).tolist() == [True, False]
    assert apply("not", [np.array([True, False])], BOOL).tolist() == [False, True]
    assert apply("xor", [np.array([True, False]), np.array([True, True])], BOOL).tolist() == [False, True]


@pytest.mark.parametrize("element", [F32, BF16, F16], ids=str)
def test_max_and_min_give_nan_if_either_is(element):
    a, b = (np.array(side).astype(element.dtype) for side in ([1, np.nan, 2], [np.nan, 1, 3]))
    assert np.isnan(apply("max", [a, b], element).astype(np.float32)).tolist() == [True, True, False]
    assert np.isnan(apply("min", [a, b], element).astype(np.float32)).tolist() == [True, True, False]


def test_select_takes_bf16_and_broadcasts():
    chosen = apply("select", [np.array([[True], [False]]), np.array([1, 2], BF16.dtype), np.array(3, BF16.dtype)], BF16)
    assert chosen.astype(np.float32).tolist() == [[1, 2], [3, 3]]


def test_casts_wrap_integers_and_round_floats_to_even():
    assert convert(np.int32([300, -129]), I8).tolist() == [44, 127]
    assert convert(np.float32([2.9, -2.9]), I16).tolist() == [2, -2]
    assert convert(np.float32([0, np.nan, -0.0, 3]), BOOL).tolist() == [False, True, False, True]
    assert convert(np.int32([9, -9, 7]), I4).astype(int).tolist() == [-7, 7, 7]
    assert convert(np.float32([1 + 2**-8]), BF16).astype(np.float32).tolist() == [1.0]
    assert convert(np.float32([1 + 3 * 2**-8]), BF16).astype(np.float32).tolist() == [1 + 2**-6]


def test_saturating_casts_clip():
    values = np.float32([np.nan, np.inf, -np.inf, 300, -300, 5.9])
    assert saturate(values, U8, F32).tolist() == [0, 255, 0, 255, 0, 5]
    assert saturate(values, I4, F32).astype(int).tolist() == [0, 7, -8, 7, -8, 5]
    assert saturate(np.float32([1e30, -1e30]), I64, F32).tolist() == [2**63 - 1, -(2**63)]
    assert saturate(np.float32([1e30, -1]), U64, F32).tolist() == [2**64 - 1, 0]
    assert saturate(np.int64([2**40, -5]), U32, I64).tolist() == [2**32 - 1, 0]
    assert saturate(np.float32([1e9, -np.inf]), F8E4M3FN, F32).astype(np.float32).tolist() == [448, -448]


@pytest.mark.parametrize("element", [I4, U4, I2], ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_packing_keeps_every_value_and_puts_the_first_in_the_low_bits(element, count):
    low = -(1 << (element.bits - 1)) if element in (I4, I2) else 0
    values = (np.arange(2 * count) % (1 << element.bits) + low).astype(np.int8).astype(element.dtype).reshape(2, count)
    packed = pack(values, element)
    assert packed.shape == (2, -(-count * element.bits // 8))
    assert (unpack(packed, count, element).astype(int) == values.astype(int)).all()
    assert packed[0, 0] & ((1 << element.bits) - 1) == int(values[0, 0]) & ((1 << element.bits) - 1)


def test_onnx_packs_int4_alike():
    from onnx import helper

    values = np.array([-8, 7, 3, -1, 5], np.int8)
    tensor = helper.make_tensor("t", 22, [5], values.tolist())
    stored = bytes(tensor.raw_data) if tensor.raw_data else bytes(value & 0xFF for value in tensor.int32_data)
    assert pack(values.astype(ml_dtypes.int4).reshape(1, -1), I4).tobytes() == stored
