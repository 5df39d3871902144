import numpy as np
import pytest

from compiler.errors import InvalidModel, OpatlasError, UnsupportedOperator
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, run_node

RANDOM = np.random.default_rng(5)


def floats(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("opset", [1, 9, 13])
@pytest.mark.parametrize(
    ("a", "b"), [((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((1, 2, 3), (4, 3, 2))]
)
def test_matmul(opset, a, b):
    a, b = floats(*a), floats(*b)
    np.testing.assert_allclose(run_node("MatMul", [a, b], opset)[0], np.matmul(a, b), rtol=1e-5, atol=1e-6)


A, B, C = floats(3, 2), floats(4, 3), floats(2, 4)


@pytest.mark.parametrize("opset", [1, 6, 7, 9, 11, 13])
def test_gemm_in_every_version(opset):
    (got,) = run_node("Gemm", [A, B, C], opset, transA=1, transB=1, alpha=0.5, beta=2.0)
    np.testing.assert_allclose(got, 0.5 * A.T @ B.T + 2 * C, rtol=1e-5, atol=1e-6)


def test_addend_broadcasts_by_attribute_before_version_7():
    row = floats(4)
    expected = A.T @ B.T + row
    np.testing.assert_allclose(
        run_node("Gemm", [A, B, row], 6, transA=1, transB=1, broadcast=1)[0], expected, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(run_node("Gemm", [A, B, row], 7, transA=1, transB=1)[0], expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(InvalidModel, match="'broadcast' is not set"):
        run_node("Gemm", [A, B, row], 6, transA=1, transB=1)


def test_gemm_without_an_addend():
    np.testing.assert_allclose(run_node("Gemm", [C, B], 11)[0], C @ B, rtol=1e-5, atol=1e-6)


def test_gemm_of_integers():
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert run_node("Gemm", [a, a.T.copy(), np.int32([[1]])], 13, beta=3.0)[0].tolist() == [[8, 17], [17, 53]]
    with pytest.raises(UnsupportedOperator, match="attribute 'alpha'"):
        run_node("Gemm", [a, a.T.copy()], 13, alpha=0.5)


def test_gemm_of_half_floats_rounds_once():
    a, c = np.full((1, 1), 2049, np.float16), np.full((1, 1), -2048, np.float16)
    one = np.ones((1, 1), np.float16)
    assert run_node("Gemm", [a * 0 + 2048, one, c], 13)[0] == 0
    wide = np.array([[2048, 1]], np.float16)
    assert run_node("Gemm", [wide, np.ones((2, 1), np.float16), c], 13)[0] == 1


def test_gemm_takes_matrices_only():
    with pytest.raises(InvalidModel, match="expected matrices"):
        run_node("Gemm", [floats(1, 2, 3), floats(3, 4)], 13)


IMAGE, WEIGHT, BIAS = floats(1, 4, 7, 6), floats(6, 2, 3, 2), floats(6)


@pytest.mark.parametrize("opset", [1, 11, 22])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"pads": [1, 0, 2, 1], "strides": [2, 1]},
        {"dilations": [2, 1], "kernel_shape": [3, 2]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER", "strides": [3, 1]},
        {"auto_pad": "VALID"},
    ],
)
def test_conv(opset, attributes):
    agrees_with_onnxruntime("Conv", [IMAGE, WEIGHT, BIAS], opset, group=2, **attributes)


def test_conv_of_one_and_three_dims():
    agrees_with_onnxruntime("Conv", [floats(2, 3, 8), floats(4, 3, 3)], 11, strides=[2])
    agrees_with_onnxruntime("Conv", [floats(1, 2, 4, 5, 3), floats(2, 2, 2, 2, 2), floats(2)], 11)


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 2]},
        {"auto_pad": "SOMETIMES"},
        {"strides": [1]},
        {"pads": [1, 1]},
        {"group": 3},
    ],
)
def test_wrong_conv_is_refused(attributes):
    with pytest.raises(OpatlasError):
        run_node("Conv", [IMAGE, WEIGHT, BIAS], 11, **{"group": 2, **attributes})


@pytest.mark.parametrize("opset", [1, 11, 22])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 3], "pads": [1, 0, 0, 1]},
        {"strides": [2, 2], "output_padding": [1, 0]},
        {"dilations": [2, 1]},
        {"strides": [2, 2], "output_shape": [8, 5]},
        {"strides": [2, 2], "output_shape": [8, 5], "auto_pad": "SAME_UPPER"},
        {"strides": [2, 2], "auto_pad": "SAME_LOWER"},
        {"auto_pad": "VALID"},
    ],
)
def test_conv_transpose(opset, attributes):
    agrees_with_onnxruntime(
        "ConvTranspose", [floats(1, 4, 4, 3), floats(4, 2, 3, 2), floats(4)], opset, group=2, **attributes
    )


@pytest.mark.parametrize("equation", ["ij,jk->ik", "bij,bjk", "ii->i", "...i,i->...", "ij->ji"])
def test_einsum(equation):
    shapes = {"ij,jk->ik": [(2, 3), (3, 4)], "bij,bjk": [(2, 3, 4), (2, 4, 2)], "ii->i": [(3, 3)]}
    shapes |= {"...i,i->...": [(2, 5, 3), (3,)], "ij->ji": [(2, 3)]}
    arrays = [floats(*shape) for shape in shapes[equation]]
    (got,) = run_node("Einsum", arrays, 12, equation=equation)
    np.testing.assert_allclose(got, np.einsum(equation, *arrays), rtol=1e-5, atol=1e-6)
