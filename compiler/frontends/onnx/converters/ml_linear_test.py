import numpy as np
import pytest
from scipy.special import ndtri

from compiler.errors import InvalidModel
from compiler.frontends.onnx.converters.ml_harness_test import DTYPES, RANDOM, numbers, run_ml, same_as_onnxruntime

TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]


def floats(*shape):
    return RANDOM.normal(size=shape).astype(np.float32).reshape(-1).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("intercepts", [True, False])
def test_a_linear_regression_is_a_product_and_a_sum(dtype, targets, intercepts):
    x, coefficients, offsets = numbers((4, 5), dtype), floats(targets, 5), floats(targets) if intercepts else None
    found = run_ml("LinearRegressor", [x], 1, targets=targets, coefficients=coefficients, intercepts=offsets)[0]
    expected = x.astype(np.float64) @ np.reshape(coefficients, (targets, 5)).T + (offsets or 0)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_scores_of_a_regression_are_transformed(transform):
    given = {"targets": 3, "coefficients": floats(3, 5), "intercepts": floats(3)}
    same_as_onnxruntime("LinearRegressor", [numbers((4, 5), np.float32)], post_transform=transform, **given)


def test_probit_is_the_inverse_of_the_normal_distribution_within_its_approximation():
    p = np.array([[0.01], [0.25], [0.5], [0.9]], np.float32)
    found = run_ml("LinearRegressor", [p], 1, coefficients=[1.0], post_transform="PROBIT")[0]
    np.testing.assert_allclose(found, ndtri(p), atol=6e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("labels", [{"classlabels_ints": [7, 5, 9]}, {"classlabels_strings": ["x", "y", "z"]}])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_the_greatest_score_decides(dtype, labels, transform):
    given = {"coefficients": floats(3, 5), "intercepts": floats(3), "post_transform": transform, **labels}
    same_as_onnxruntime("LinearClassifier", [numbers((6, 5), dtype)], 1, 2, **given)


@pytest.mark.parametrize("labels", [{"classlabels_ints": [7, 5]}, {"classlabels_strings": ["x", "y"]}])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_one_score_decides_between_two_classes(labels, transform):
    given = {"coefficients": floats(5), "intercepts": floats(1), "post_transform": transform, **labels}
    same_as_onnxruntime("LinearClassifier", [numbers((6, 5), np.float32)], 1, 2, **given)


def test_coefficients_that_do_not_fit_are_refused():
    with pytest.raises(InvalidModel, match="multiple of 2"):
        run_ml("LinearClassifier", [numbers((2, 3), np.float32)], 1, 2, coefficients=floats(7), intercepts=floats(2))


KERNELS = [("LINEAR", []), ("POLY", [0.5, 1.0, 2.0]), ("RBF", [0.25, 0.0, 0.0]), ("SIGMOID", [0.125, 0.5, 0.0])]


@pytest.mark.parametrize(("kind", "parameters"), KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_support_vectors_add_up(kind, parameters, one_class):
    given = {"coefficients": floats(4), "support_vectors": floats(4, 3), "n_supports": 4, "rho": floats(1)}
    kernel = {"kernel_type": kind, "kernel_params": parameters or [0.0, 0.0, 0.0], "one_class": one_class}
    same_as_onnxruntime("SVMRegressor", [numbers((5, 3), np.float32)], tolerance=1e-4, **given, **kernel)


def test_without_support_vectors_coefficients_belong_to_features():
    given = {
        "coefficients": floats(3),
        "rho": floats(1),
        "kernel_type": "LINEAR",
        "n_supports": 0,
        "kernel_params": [0.0] * 3,
    }
    same_as_onnxruntime("SVMRegressor", [numbers((5, 3), np.float32)], **given)


def machine(counts, labels, *, probabilities):
    vectors, classes = sum(counts), len(counts)
    pairs = classes * (classes - 1) // 2
    given = {"coefficients": floats(classes - 1, vectors), "support_vectors": floats(vectors, 3), "rho": floats(pairs)}
    chances = {"prob_a": (-np.abs(floats(pairs))).tolist(), "prob_b": floats(pairs)} if probabilities else {}
    names = {f"classlabels_{'ints' if isinstance(labels[0], int) else 'strings'}": labels[:classes]}
    return {"vectors_per_class": counts, "kernel_params": [0.0] * 3, **given, **chances, **names}


@pytest.mark.parametrize(("kind", "parameters"), KERNELS)
@pytest.mark.parametrize("counts", [[2, 3], [2, 3, 1], [1, 2, 2, 3]])
@pytest.mark.parametrize("probabilities", [False, True])
def test_pairs_of_classes_vote(kind, parameters, counts, probabilities):
    given = machine(counts, [3, 1, 7, 5], probabilities=probabilities)
    given |= {"kernel_type": kind, "kernel_params": parameters or [0.0] * 3}
    same_as_onnxruntime("SVMClassifier", [numbers((6, 3), np.float32)], 1, 2, tolerance=2e-4, **given)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_types_labels_and_transforms_of_machines(dtype, transform):
    for counts in ([2, 3], [2, 1, 2]):
        given = machine(counts, ["x", "y", "z"], probabilities=False)
        same_as_onnxruntime("SVMClassifier", [numbers((6, 3), dtype)], 1, 2, post_transform=transform, **given)


def test_a_linear_machine_has_a_score_a_class():
    given = {"coefficients": floats(3, 4), "rho": floats(1), "classlabels_ints": [4, 5, 6], "kernel_params": [0.0] * 3}
    same_as_onnxruntime("SVMClassifier", [numbers((6, 4), np.float32)], 1, 2, **given)
