import math

import numpy as np
import onnx
import pytest

from compiler.errors import InvalidModel
from compiler.frontends.onnx.harness_test import node_model, run_node, run_onnxruntime

F = np.array([[-1.5, -0.0, 0.25], [2.0, 0.5, -3.0]], np.float32)
G = np.array([[2.0, -1.0, 0.5], [3.0, -0.5, 1.0]], np.float32)
I32 = np.array([[7, -7, 3], [-3, 5, 0]], np.int32)
B = np.array([[True, False, True], [False, False, True]])


def versions(op_type, oldest=1):
    """Every version of the operator since ``oldest``, as the operator set that brought it."""
    found = {s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == op_type and not s.domain}
    return [(op_type, version) for version in sorted(found) if version >= oldest]


def every(names, oldest=1):
    return [pair for name in names for pair in versions(name, oldest)]


UNARY = {
    "Abs": np.abs,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Exp": np.exp,
    "Floor": np.floor,
    "Neg": np.negative,
    "Reciprocal": np.reciprocal,
    "Round": np.rint,
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Tan": np.tan,
    "Tanh": np.tanh,
    "Erf": np.vectorize(math.erf),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "IsNaN": np.isnan,
    "IsInf": np.isinf,
    "Relu": lambda x: np.maximum(x, 0),
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Identity": lambda x: x,
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "Elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "LeakyRelu": lambda x: np.where(x < 0, 0.01 * x, x),
    "Celu": lambda x: np.where(x < 0, np.expm1(x), x),
    "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "ThresholdedRelu": lambda x: np.where(x > 1, x, 0),
    "Swish": lambda x: x / (1 + np.exp(-x)),
    "Gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    "Shrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
}
UNIT = {"Acos": np.arccos, "Asin": np.arcsin, "Atanh": np.arctanh}
POSITIVE = {"Acosh": np.arccosh, "Log": np.log, "Sqrt": np.sqrt}


@pytest.mark.parametrize(("op_type", "opset"), every([*UNARY, *UNIT, *POSITIVE]))
def test_unary_operators_in_every_version(op_type, opset):
    x = np.array([0.0, -0.5, 0.9], np.float32) if op_type in UNIT else F
    x = np.array([1.0, 2.5, 7.0], np.float32) if op_type in POSITIVE else x
    function = {**UNARY, **UNIT, **POSITIVE}[op_type]
    with np.errstate(all="ignore"):
        expected = function(x.astype(np.float64))
    (got,) = run_node(op_type, [x], opset)
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-7)


BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "Less": np.less,
}
LOGICAL = {"And", "Or", "Xor"}


def operands(op_type, opset):
    if op_type in LOGICAL:
        return B, ~B
    return (I32, np.abs(I32)) if op_type == "Equal" and opset < 11 else (F, G)


@pytest.mark.parametrize(("op_type", "opset"), every(BINARY))
def test_binary_operators_in_every_version(op_type, opset):
    a, b = operands(op_type, opset)
    np.testing.assert_array_equal(run_node(op_type, [a, b], opset)[0], BINARY[op_type](a, b))


@pytest.mark.parametrize("op_type", [*BINARY, "Pow"])
def test_broadcast_before_version_7_needs_the_attribute(op_type):
    a, b = operands(op_type, 1)
    with pytest.raises(InvalidModel, match="'broadcast' is not set"):
        run_node(op_type, [a, b[0]], 1)
    function = {**BINARY, "Pow": np.power}[op_type]
    with np.errstate(all="ignore"):
        expected = function(a, b[0])
    np.testing.assert_allclose(run_node(op_type, [a, b[0]], 1, broadcast=1)[0], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("axis", "width", "shape"), [(0, 1, (2, 1, 1)), (1, 1, (3, 1)), (1, 2, (3, 4)), (-2, 1, (3, 1)), (0, 2, (2, 3, 1))]
)
def test_axis_of_old_broadcast_aligns_the_operand(axis, width, shape):
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    first = axis % 3
    b = np.arange(math.prod(shape), dtype=np.float32).reshape(a.shape[first : first + width])
    got = run_node("Add", [a, b], 6, broadcast=1, axis=axis)[0]
    np.testing.assert_array_equal(got, a + b.reshape(shape))


def test_axis_that_leaves_no_room_is_refused():
    with pytest.raises(InvalidModel, match="leaves no room"):
        run_node("Add", [F, F], 6, broadcast=1, axis=1)


@pytest.mark.parametrize(("op_type", "opset"), every(["Max", "Min", "Sum", "Mean"]))
def test_variadic_operators_in_every_version(op_type, opset):
    arrays = [F, G, F * 2]
    function = {"Max": np.max, "Min": np.min, "Sum": np.sum, "Mean": np.mean}[op_type]
    np.testing.assert_allclose(run_node(op_type, arrays, opset)[0], function(np.stack(arrays), axis=0), rtol=1e-6)
    np.testing.assert_array_equal(run_node(op_type, [F], opset)[0], F)


def test_variadic_operators_broadcast_only_since_version_8():
    np.testing.assert_array_equal(run_node("Max", [F, G[0]], 8)[0], np.maximum(F, G[0]))
    with pytest.raises(InvalidModel, match="before version 8 nothing broadcasts"):
        run_node("Max", [F, G[0]], 6)


@pytest.mark.parametrize("opset", [1, 7, 12, 13, 15])
def test_power_in_every_version(opset):
    base = np.abs(F) + 1
    np.testing.assert_allclose(run_node("Pow", [base, G], opset)[0], base**G, rtol=1e-6)


@pytest.mark.parametrize(
    ("base", "exponent", "expected"),
    [
        (np.array([2, 3], np.int32), np.array([2.5, -1], np.float32), [5, 0]),
        (np.array([2, 3], np.float32), np.array([3, -1], np.int64), [8, 1 / 3]),
        (np.array([2, -3], np.int64), np.array([3, 2], np.int32), [8, 9]),
    ],
)
def test_power_of_mixed_types_has_the_bases_type(base, exponent, expected):
    (got,) = run_node("Pow", [base, exponent], 15)
    assert got.dtype == base.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("opset", [10, 13, 28])
def test_modulo_of_integers_has_the_sign_that_fmod_says(opset):
    a, b = np.array([7, -7, 7, -7], np.int32), np.array([3, 3, -3, -3], np.int32)
    assert run_node("Mod", [a, b], opset)[0].tolist() == [1, 2, -2, -1]
    assert run_node("Mod", [a, b], opset, fmod=1)[0].tolist() == [1, -1, 1, -1]


def test_modulo_of_floats():
    a, b = np.array([5.5, -5.5], np.float32), np.array([2, 2], np.float32)
    assert run_node("Mod", [a, b], 13, fmod=1)[0].tolist() == [1.5, -1.5]
    assert run_node("Mod", [a, b], 28)[0].tolist() == [1.5, 0.5]
    with pytest.raises(InvalidModel, match="floats need 1"):
        run_node("Mod", [a, b], 13)
    with pytest.raises(InvalidModel, match="expected 0 or 1"):
        run_node("Mod", [a, b], 13, fmod=2)


def test_integer_division_truncates():
    a, b = np.array([7, -7, -7], np.int64), np.array([2, 2, -2], np.int64)
    assert run_node("Div", [a, b], 14)[0].tolist() == [3, -3, 3]


@pytest.mark.parametrize("opset", [1, 6])
def test_clip_bounds_are_attributes_at_first(opset):
    np.testing.assert_array_equal(run_node("Clip", [F], opset, min=-1.0, max=0.5)[0], np.clip(F, -1, 0.5))
    np.testing.assert_array_equal(run_node("Clip", [F], opset, max=0.5)[0], np.minimum(F, 0.5))
    infinite = np.array([np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(run_node("Clip", [infinite], opset)[0], infinite)


@pytest.mark.parametrize("opset", [11, 12, 13])
def test_clip_bounds_are_inputs_later(opset):
    low, high = np.array(-1, np.float32), np.array(0.5, np.float32)
    for arrays in ([F, low, high], [F, None, high], [F, low], [F], [F, high, low]):
        expected = run_onnxruntime(node_model("Clip", arrays, opset), *[a for a in arrays if a is not None])[0]
        np.testing.assert_array_equal(run_node("Clip", arrays, opset)[0], expected)


@pytest.mark.parametrize(("direction", "expected"), [("LEFT", [2, 8, 0]), ("RIGHT", [0, 0, 127])])
@pytest.mark.parametrize("opset", [11, 28])
def test_bit_shift(direction, expected, opset):
    x, y = np.array([1, 2, 255], np.uint8), np.array([1, 2, 1], np.uint8)
    expected = [2, 8, 254] if direction == "LEFT" else expected
    assert run_node("BitShift", [x, y], opset, direction=direction)[0].tolist() == expected


def test_unknown_shift_direction_is_refused():
    with pytest.raises(InvalidModel, match="expected LEFT or RIGHT"):
        run_node("BitShift", [np.ones(1, np.uint8)] * 2, 11, direction="UP")


@pytest.mark.parametrize("op_type", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_bitwise_operators(op_type):
    function = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}[op_type]
    np.testing.assert_array_equal(run_node(op_type, [I32, I32[::-1]], 18)[0], function(I32, I32[::-1]))
    np.testing.assert_array_equal(run_node("BitwiseNot", [I32], 18)[0], ~I32)


def test_comparisons_with_equality():
    np.testing.assert_array_equal(run_node("GreaterOrEqual", [F, G], 16)[0], F >= G)
    np.testing.assert_array_equal(run_node("LessOrEqual", [F, G], 12)[0], F <= G)
    np.testing.assert_array_equal(run_node("Not", [B], 1)[0], ~B)


def test_where_broadcasts_all_three():
    for opset in (9, 16):
        np.testing.assert_array_equal(run_node("Where", [B[:1], F, G[:, :1]], opset)[0], np.where(B[:1], F, G[:, :1]))


def test_signs_of_infinity():
    x = np.array([np.inf, -np.inf, np.nan, 1], np.float32)
    assert run_node("IsInf", [x], 10, detect_negative=0)[0].tolist() == [True, False, False, False]
    assert run_node("IsInf", [x], 20, detect_positive=0)[0].tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("op_type", "opset", "attributes", "expected"),
    [
        ("Elu", 1, {"alpha": 2.0}, lambda x: np.where(x < 0, 2 * np.expm1(x), x)),
        ("Elu", 6, {"alpha": 2.0}, lambda x: np.where(x < 0, 2 * np.expm1(x), x)),
        ("Selu", 1, {}, lambda x: 1.0507 * np.where(x < 0, 1.6732 * np.expm1(x), x)),
        ("Selu", 6, {}, lambda x: 1.0507009873554805 * np.where(x < 0, 1.6732632423543772 * np.expm1(x), x)),
        ("HardSigmoid", 6, {"alpha": 0.5, "beta": 0.25}, lambda x: np.clip(0.5 * x + 0.25, 0, 1)),
        ("Shrink", 9, {"lambd": 1.5, "bias": 1.0}, lambda x: np.where(x < -1.5, x + 1, np.where(x > 1.5, x - 1, 0))),
        ("Swish", 24, {"alpha": 2.0}, lambda x: x / (1 + np.exp(-2 * x))),
        ("Celu", 12, {"alpha": 2.0}, lambda x: np.where(x < 0, 2 * np.expm1(x / 2), x)),
        ("ThresholdedRelu", 10, {"alpha": 0.3}, lambda x: np.where(x > 0.3, x, 0)),
    ],
)
def test_parameters_of_activations(op_type, opset, attributes, expected):
    np.testing.assert_allclose(run_node(op_type, [F], opset, **attributes)[0], expected(F.astype(float)), rtol=2e-6)


def test_gelu_by_tanh():
    x = F.astype(np.float64)
    expected = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(run_node("Gelu", [F], 20, approximate="tanh")[0], expected, rtol=2e-6, atol=1e-7)
    with pytest.raises(InvalidModel, match="expected none or tanh"):
        run_node("Gelu", [F], 20, approximate="erf")


IMAGE = np.linspace(-1, 1, 24, dtype=np.float32).reshape(1, 2, 3, 4)


@pytest.mark.parametrize("opset", [1, 6])
def test_old_prelu_has_a_slope_a_channel(opset):
    slope = np.array([0.5, 2.0], np.float32)
    expected = np.where(IMAGE < 0, slope.reshape(2, 1, 1) * IMAGE, IMAGE)
    np.testing.assert_array_equal(run_node("PRelu", [IMAGE, slope], opset)[0], expected)


@pytest.mark.parametrize("opset", [7, 9, 16])
def test_prelu_broadcasts_its_slope(opset):
    slope = np.array([0.5, 2.0, 1, 3], np.float32)
    expected = np.where(IMAGE < 0, slope * IMAGE, IMAGE)
    np.testing.assert_array_equal(run_node("PRelu", [IMAGE, slope], opset)[0], expected)


def test_an_integer_to_the_power_of_a_short_float_is_not_rounded_to_it():
    exponent = np.array([4.93], np.float16)
    (got,) = run_node("Pow", [np.array([4], np.int64), exponent], 15)
    np.testing.assert_array_equal(got, np.array([int(4 ** float(exponent[0]))]))
