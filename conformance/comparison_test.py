"""Each class passes at its bound and fails just beyond; what is no number is compared too."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

from conformance.comparison import Evidence, Figures, Verdict, compare
from conformance.errors import UnknownToleranceClass
from conformance.numerics import format_of
from conformance.tolerance import MissingEvidence
from conformance.tolerance_names import parse_tolerance

F32 = np.dtype(np.float32)
WITHIN, SECOND, DIFFERENT = Verdict.WITHIN, Verdict.SECOND_TIER, Verdict.DIFFERENT


def verdict(output, reference, tolerance, **evidence):
    return compare(
        [np.asarray(output)], [np.asarray(reference)], parse_tolerance(tolerance), Evidence(**evidence)
    ).verdict


def float32_at(value):
    return np.array([value], np.float64).astype(np.float32)


# exact


def test_exact_takes_equal_values_only():
    assert verdict(float32_at(0.1), float32_at(0.1).astype(float), "exact") is WITHIN
    assert verdict(np.nextafter(float32_at(0.1), 1), float32_at(0.1).astype(float), "exact") is DIFFERENT


@pytest.mark.parametrize("tolerance", ["exact", "exact_signed_zero"])
def test_exact_is_held_against_the_rounded_reference(tolerance):
    third = np.array([1 / 3]).astype(np.float16)
    assert verdict(third, [1 / 3], tolerance) is WITHIN
    assert verdict(np.nextafter(third, np.float16(1)), [1 / 3], tolerance) is DIFFERENT
    assert verdict(np.array([np.inf], np.float16), [65520.0], tolerance) is WITHIN
    assert verdict(np.array([np.inf], np.float16), [65519.0], tolerance) is DIFFERENT


def test_the_sign_of_zero_counts_where_the_class_says_so():
    plus, minus = np.array([0.0], np.float32), np.array([-0.0], np.float32)
    assert verdict(minus, plus, "exact") is WITHIN
    assert verdict(minus, plus, "exact_signed_zero") is DIFFERENT
    assert verdict(minus, minus, "exact_signed_zero") is WITHIN


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, ml_dtypes.int4, ml_dtypes.uint4])
def test_integers_and_booleans_are_exact_in_every_class(dtype):
    one, other = np.array([0, 1]).astype(dtype), np.array([1, 1]).astype(dtype)
    for tolerance in ("exact", "ulp(4)", "max_relative(100)", "whole_graph"):
        assert verdict(one, one, tolerance) is WITHIN
        assert verdict(one, other, tolerance) is DIFFERENT


def test_steps_let_integers_be_n_apart_without_wrapping():
    assert verdict(np.uint8([255]), np.uint8([254]), "steps(1)") is WITHIN
    assert verdict(np.uint8([255]), np.uint8([253]), "steps(1)") is DIFFERENT
    assert verdict(np.uint8([0]), np.uint8([255]), "steps(1)") is DIFFERENT
    assert verdict(np.int64([2**62]), np.int64([-(2**62)]), "steps(1)") is DIFFERENT


def test_large_integers_are_not_compared_through_floats():
    assert verdict(np.int64([2**53 + 1]), np.int64([2**53]), "exact") is DIFFERENT
    assert verdict(np.uint64([2**64 - 1]), np.uint64([2**64 - 2]), "exact") is DIFFERENT


# ulp


@pytest.mark.parametrize("n", [0.5, 1, 2, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_ulp_passes_at_its_bound_and_fails_beyond(n, dtype):
    p = format_of(np.dtype(dtype)).mantissa_bits
    output = np.array([1.0 + 8 * 2.0**-p]).astype(dtype)
    exact = float(output.astype(np.float64)[0])
    at_bound = exact - n * 2.0**-p
    assert verdict(output, [at_bound], f"ulp({n})") is WITHIN
    assert verdict(output, [at_bound - 1e-9], f"ulp({n})") is SECOND
    assert verdict(np.array([1.75]).astype(dtype), [1.75 - 16.1 * n * 2.0**-p], "ulp(1)") is (
        SECOND if n < 1 else DIFFERENT
    )


def test_a_reference_of_zero_must_give_zero():
    assert verdict(np.array([0.0], F32), [0.0], "ulp(100)") is WITHIN
    assert verdict(np.array([1e-45], F32), [0.0], "ulp(100)") is DIFFERENT


def test_a_denormal_may_be_flushed_to_zero():
    assert verdict(np.array([0.0], F32), [1e-40], "ulp(1)") is WITHIN
    assert verdict(np.array([0.0], F32), [1.2e-38], "ulp(1)") is DIFFERENT


# special values


@pytest.mark.parametrize("tolerance", ["exact", "ulp(4)", "max_relative(4)", "special_values", "input_scaled(2)"])
def test_nan_and_infinity_must_be_where_the_reference_has_them(tolerance):
    special = [np.nan, np.inf, -np.inf]
    for got, wanted in itertools.product(special, special):
        same = got is wanted
        assert verdict(np.array([got, 1], F32), [wanted, 1.0], tolerance) is (WITHIN if same else DIFFERENT)
    for value in special:
        assert verdict(np.array([value, 1], F32), [2.0, 1.0], tolerance) is DIFFERENT
        assert verdict(np.array([2, 1], F32), [value, 1.0], tolerance) is DIFFERENT


def test_a_finite_reference_beyond_the_type_may_be_infinite_but_not_of_the_other_sign():
    assert verdict(np.array([np.inf], np.float16), [65530.0], "ulp(1)") is WITHIN
    assert verdict(np.array([-np.inf], np.float16), [65530.0], "ulp(1)") is DIFFERENT
    assert verdict(np.array([np.inf], np.float16), [60000.0], "ulp(1)") is DIFFERENT


def test_a_format_without_infinity_overflows_to_nan():
    nan = np.array([np.nan]).astype(ml_dtypes.float8_e4m3fn)
    assert verdict(nan, [1000.0], "ulp(1)") is WITHIN
    assert verdict(nan, [100.0], "ulp(1)") is DIFFERENT


# structure


def test_a_dropped_or_added_output_is_a_difference():
    value = np.ones(2, np.float32)
    tolerance = parse_tolerance("ulp(1)")
    assert compare([value], [value, value], tolerance).verdict is DIFFERENT
    assert compare([value, value], [value], tolerance).verdict is DIFFERENT
    assert compare([], [value], tolerance).problem == "0 outputs, expected 1"


@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (), (3,), (0,)])
def test_shapes_must_be_equal_even_where_they_broadcast(shape):
    assert verdict(np.ones(shape, F32), np.ones(2), "max_relative(10)") is DIFFERENT


def test_a_wrong_type_is_a_difference_even_with_equal_values():
    tolerance, one = parse_tolerance("exact"), [np.ones(2, np.float64)]
    assert compare([np.ones(2, np.float16)], one, tolerance, types=[F32]).verdict is DIFFERENT
    assert compare([np.ones(2, np.float32)], one, tolerance, types=[F32]).verdict is WITHIN
    assert compare([np.ones(2, np.int32)], one, tolerance, types=[None]).verdict is DIFFERENT
    assert compare([np.ones(2, np.int32)], [np.ones(2, np.int64)], tolerance).verdict is DIFFERENT


def test_empty_outputs_are_equal_if_shape_and_type_are():
    assert verdict(np.zeros((0, 3), F32), np.zeros((0, 3)), "dot_product") is WITHIN


def test_sequences_optionals_and_text():
    tolerance = parse_tolerance("ulp(1)")
    ones = np.ones(1, np.float32)
    assert compare([[ones, ones]], [[ones, ones]], tolerance).verdict is WITHIN
    assert compare([[ones]], [[ones, ones]], tolerance).verdict is DIFFERENT
    assert compare([[ones, 2 * ones]], [[ones, ones]], tolerance).worst == ("output 0[1]", (0,))
    assert compare([None], [ones], tolerance).verdict is DIFFERENT
    assert compare([ones], [None], tolerance).verdict is DIFFERENT
    assert compare([None], [None], tolerance).verdict is WITHIN
    words = np.array(["a", "ß"], object)
    assert compare([words], [np.array(["a", "ß"])], tolerance).verdict is WITHIN
    assert compare([words], [np.array(["a", "ss"], object)], tolerance).verdict is DIFFERENT
    assert compare([words], [ones], tolerance).verdict is DIFFERENT


def test_the_imaginary_part_counts():
    z = np.array([1 + 1j], np.complex64)
    assert verdict(z, z.astype(np.complex128), "ulp(1)") is WITHIN
    assert verdict(z.conj(), z.astype(np.complex128), "ulp(1)") is DIFFERENT


def test_the_worst_element_is_named_and_figures_measured():
    reference = np.array([[1.0, 2.0], [3.0, 4.0]])
    output = reference.astype(np.float32)
    output[1, 0] += np.float32(0.75)
    found = compare([output], [reference], parse_tolerance("ulp(1)"))
    assert found.worst == ("output 0", (1, 0))
    assert "3.75, expected 3" in found.problem
    assert found.figures.max_abs == 0.75
    assert found.figures.max_rel == 0.25
    assert found.figures.max_ulp == 0.75 / 2.0**-22


# the other pointwise classes


@pytest.mark.parametrize(
    ("tolerance", "x", "reference", "bound"),
    [
        ("abs_error(sigmoid)", 2.0, 0.75, 0.75 * 2 * (1 + 2)),
        ("abs_error(tanh)", 2.0, 0.75, 0.75 * 4 * (3 + 4)),
        ("input_scaled(2)", 8.0, 0.75, 2 * 8),
        ("max_relative(3)", 8.0, 0.75, 3 * 0.75),
        ("row_relative(3, 0)", 8.0, 0.75, 3 * 0.75),
        ("relative(3)", 8.0, 0.75, 3 * 0.75),
        ("exp_relative(3)", 8.0, 0.75, 3 * 0.75 * (1 + math.log(1 / 0.75))),
        ("log_sum(3)", 8.0, 0.75, 3 * (0.75 + 1)),
    ],
)
def test_pointwise_bounds_in_float32(tolerance, x, reference, bound):
    inputs = [np.array([x], np.float32)]
    # Outputs lie on float32's grid, so it is the reference that moves: by the bound, and by a little more.
    output = np.array([reference], np.float32)
    shift = bound * 2.0**-23
    for sign in (1, -1):
        at_bound = [reference + sign * shift * (1 - 1e-5)]
        beyond = [reference + sign * shift * (1 + 1e-5)]
        assert verdict(output, at_bound, tolerance, inputs=inputs) is WITHIN
        assert verdict(output, beyond, tolerance, inputs=inputs) is SECOND
        assert verdict(output, [reference + sign * shift * 17], tolerance, inputs=inputs) is DIFFERENT


@pytest.mark.parametrize(
    ("tolerance", "seen"),
    [
        ("max_relative(4)", False),  # the largest element of the whole output is 1024 times as large
        ("row_relative(4, 1)", True),
        ("row_relative(4, -1)", True),
        ("row_relative(4, 0)", False),
        ("relative(4)", True),
        ("exp_relative(4)", True),
        ("log_sum(4)", True),
    ],
)
def test_an_error_in_a_small_row_hides_behind_a_large_one_only_in_a_class_for_the_whole_output(tolerance, seen):
    exact = np.array([[1024.0, 512.0], [1.0, 0.5]])
    wrong = exact.astype(np.float32)
    wrong[1] *= 1 + 2.0**-17  # 64 units
    assert (verdict(wrong, exact, tolerance) is not WITHIN) is seen


def test_rows_of_one_element_and_axes_that_a_result_does_not_have_mean_the_whole_output():
    exact = np.array([[1.0], [0.001]])
    wrong = (exact + np.array([[0], [2.0**-22]])).astype(np.float32)
    assert verdict(wrong, exact, "row_relative(4, 1)") is WITHIN
    assert verdict(wrong[:, 0], exact[:, 0], "row_relative(4, 2)") is WITHIN


def test_the_logarithm_of_many_terms_has_an_error_of_its_own():
    exact, moved = np.array([1e-3]), np.array([1e-3 + 5 * 2.0**-23])
    inputs = [np.ones(1000, np.float32)]
    assert verdict(moved.astype(np.float32), exact, "log_sum(1)", inputs=inputs) is WITHIN  # ln 1000 = 6.9
    assert verdict(moved.astype(np.float32), exact, "log_sum(1)") is SECOND


def test_tanh_is_narrower_in_float16():
    inputs = [np.array([2.0], np.float16)]
    at_bound = 0.75 + 0.75 * 4 * (1 + 4) * 2.0**-10
    assert verdict(np.array([0.75], np.float16), [at_bound * (1 - 1e-3)], "abs_error(tanh)", inputs=inputs) is WITHIN
    assert verdict(np.array([0.75], np.float16), [at_bound * (1 + 1e-3)], "abs_error(tanh)", inputs=inputs) is SECOND


def test_reduce_product_grows_with_the_number_of_factors():
    inputs = [np.ones(64, np.float32)]
    output, unit = np.array([1.5], np.float32), 1.5 * 2.0**-24
    assert verdict(output, [1.5 + 64 * unit], "reduce_product", inputs=inputs) is WITHIN
    assert verdict(output, [1.5 + 68 * unit], "reduce_product", inputs=inputs) is SECOND
    assert verdict(output, [1.5 + 17 * 66 * unit], "reduce_product", inputs=inputs) is DIFFERENT


def test_shape_only_and_special_values_look_at_no_finite_value():
    assert verdict(np.zeros(3, F32), np.ones(3), "shape_only") is WITHIN
    assert verdict(np.zeros(3, F32), np.ones(3), "special_values") is WITHIN
    assert verdict(np.zeros(3, F32), np.array([1, np.nan, 1]), "special_values") is DIFFERENT
    assert verdict(np.zeros(3, F32), np.ones(4), "shape_only") is DIFFERENT


def test_onnx_rule_is_atol_plus_rtol_and_takes_the_sign_into_account():
    assert verdict(np.array([1.0009], F32), [1.0], "onnx_rule(0.001, 1e-7)") is WITHIN
    assert verdict(np.array([1.0011], F32), [1.0], "onnx_rule(0.001, 1e-7)") is DIFFERENT
    assert verdict(np.array([-5.0], F32), [-1.0], "onnx_rule(0.001, 1e-7)") is DIFFERENT


# dot_product


def product(a, b, dtype):
    """float64 runs of a @ b on the data, on absolute values and on ones."""
    a, b = a.astype(dtype).astype(np.float64), b.astype(dtype).astype(np.float64)
    runs = {"absolute": [np.abs(a) @ np.abs(b)], "ones": [np.ones_like(a) @ np.ones_like(b)]}
    return a @ b, runs


@pytest.fixture
def operands():
    generator = np.random.default_rng(7)
    return generator.standard_normal((32, 64)), generator.standard_normal((64, 32))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16])
def test_dot_product_passes_float32_accumulation(operands, dtype):
    a, b = operands
    reference, runs = product(a, b, dtype)
    result = (a.astype(dtype).astype(np.float32) @ b.astype(dtype).astype(np.float32)).astype(dtype)
    assert verdict(result, reference, "dot_product", **runs) is WITHIN


def shortened(values, bits):
    """float32 with its mantissa rounded to `bits`: 10 of them are tf32."""
    drop = 23 - bits
    raw = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = (raw + (1 << (drop - 1))) >> drop << drop
    return rounded.astype(np.uint32).view(np.float32)


def test_dot_product_sees_tf32(operands):
    a, b = operands
    reference, runs = product(a, b, np.float32)
    result = shortened(a, 10).astype(np.float64) @ shortened(b, 10).astype(np.float64)
    assert verdict(result.astype(np.float32), reference, "dot_product", **runs) is not WITHIN


def test_dot_product_sees_rounding_towards_zero():
    generator = np.random.default_rng(3)
    a, b = generator.uniform(0.5, 1, (64, 8)), generator.uniform(0.5, 1, (8, 64))
    a[:, 0] *= -0.1
    reference, runs = product(a, b, np.float16)
    towards_zero = reference.astype(np.float16)
    too_large = np.abs(towards_zero.astype(float)) > np.abs(reference)
    towards_zero[too_large] = np.nextafter(towards_zero[too_large], np.float16(0))
    found = compare([towards_zero], [reference], parse_tolerance("dot_product"), Evidence(**runs))
    assert found.verdict is not WITHIN
    assert "bias" in found.problem


def test_dot_product_bound_is_six_units_of_the_absolute_run_in_float32():
    runs = {"absolute": [np.array([4.0])], "ones": [np.array([40.0])]}
    unit = 4.0 * 2.0**-24
    allowed = np.sqrt(1.6 * 40)  # of one output, the variance test is the narrower one
    assert verdict(np.array([1.0], F32), [1.0 + 0.99 * allowed * unit], "dot_product", **runs) is WITHIN
    assert verdict(np.array([1.0], F32), [1.0 + 1.01 * allowed * unit], "dot_product", **runs) is SECOND
    assert verdict(np.array([1.0], F32), [1.0 + 1.01 * 6 * 40 * 16 * unit], "dot_product", **runs) is DIFFERENT


def test_dot_product_with_a_bias_has_one_term_more():
    runs = {"absolute": [np.array([4.0])], "ones": [np.array([1.0])]}
    shift = 1.7 * 4.0 * 2.0**-11
    assert verdict(np.array([1.0], np.float16), [1.0 + shift], "dot_product", **runs) is SECOND
    assert verdict(np.array([1.0], np.float16), [1.0 + shift], "dot_product(bias)", **runs) is WITHIN


def test_dot_product_refuses_to_judge_without_its_runs():
    with pytest.raises(MissingEvidence, match="which no oracle could"):
        verdict(np.ones(1, F32), np.ones(1), "dot_product")


def test_a_mean_has_as_many_terms_as_it_reduces():
    runs = {"absolute": [np.array([1.0])], "ones": [np.array([1.0])], "inputs": [np.ones(100, np.float32)]}
    shift = 8 * 2.0**-24
    assert verdict(np.array([1.0], F32), [1.0 + shift], "reduce_sum", **runs) is WITHIN
    assert verdict(np.array([1.0], F32), [1.0 + shift], "dot_product", **runs) is SECOND


def test_a_wider_integer_reference_is_not_wrapped_to_the_type_of_the_output():
    output, types = np.array([44], np.int8), [np.dtype(np.int8)]
    exact = parse_tolerance("exact")
    assert compare([output], [np.array([44])], exact, types=types).verdict is WITHIN
    assert compare([output], [np.array([300])], exact, types=types).verdict is DIFFERENT


# whole_graph


def test_whole_graph_allows_four_times_the_noise_of_another_implementation():
    exact = np.array([100.0, 1.0])
    noise = 1e-4
    runs = {"baseline": [np.array([100.0, 1.0 + noise])], "exact": [exact]}
    assert verdict(np.array([100.0, 1.0 + 3.9 * noise], F32), exact, "whole_graph", **runs) is WITHIN
    assert verdict(np.array([100.0, 1.0 + 5.0 * noise], F32), exact, "whole_graph", **runs) is SECOND
    assert verdict(np.array([100.0, 1.0 + 90 * noise], F32), exact, "whole_graph", **runs) is DIFFERENT


def test_whole_graph_holds_the_root_mean_square_too():
    exact = np.zeros(1000)
    exact[0] = 100.0
    baseline = exact.copy()
    baseline[0] += 1e-3
    runs = {"baseline": [baseline], "exact": [exact]}
    assert verdict((exact + 3e-3).astype(F32), exact, "whole_graph", **runs) is not WITHIN


@pytest.mark.parametrize("baseline", [[100.0, 1.1], [50.0, 1.0], [0.0, 0.0]])
def test_whole_graph_refuses_to_judge_by_references_that_differ_by_more_than_rounding(baseline):
    exact = np.array([100.0, 1.0])
    with pytest.raises(MissingEvidence, match="its two references differ"):
        verdict(exact.astype(F32), exact, "whole_graph", baseline=[np.array(baseline)], exact=[exact])


def test_whole_graph_refuses_to_judge_without_an_exact_reference():
    with pytest.raises(MissingEvidence, match="exact reference"):
        verdict(np.ones(1, F32), np.ones(1), "whole_graph", baseline=[np.ones(1, F32)])


# a mutation check: a small scale factor turns every float class red


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    "tolerance",
    ["exact", "ulp(0.5)", "ulp(2)", "ulp(5)", "abs_error(sigmoid)", "abs_error(exp)", "abs_error(sin)",
     "abs_error(log)", "input_scaled(2)", "max_relative(4)", "row_relative(4, -1)", "relative(4)", "exp_relative(4)",
     "log_sum(2)", "reduce_product", "dot_product", "reduce_sum", "whole_graph"],
)  # fmt: skip
def test_scaling_an_output_by_eight_units_is_seen(dtype, tolerance):
    p = format_of(np.dtype(dtype)).mantissa_bits
    exact = np.linspace(1.0, 1.9, 50)
    right = exact.astype(dtype)
    runs = {
        "inputs": [exact.astype(dtype)], "absolute": [exact], "ones": [np.full(50, 2.0)],
        "baseline": [right], "exact": [exact],
    }  # fmt: skip
    scaled = (right.astype(float) * (1 + 2.0 ** (3 - p))).astype(dtype)
    reference = right.astype(float) if tolerance == "exact" else exact
    assert verdict(right, reference, tolerance, **runs) is WITHIN
    assert verdict(scaled, reference, tolerance, **runs) is not WITHIN


@pytest.mark.parametrize(
    "text",
    [
        "",
        "allclose",
        "ulp",
        "ulp(x)",
        "ulp(-1)",
        "ulp(1, 2)",
        "exact(1)",
        "abs_error(gamma)",
        "steps(0.5)",
        "ulp(1",
        "row_relative(4)",
        "row_relative(4, axis)",
        "row_relative(-1, 0)",
        "relative",
    ],
)
def test_a_class_that_has_no_definition_is_refused(text):
    with pytest.raises(UnknownToleranceClass):
        parse_tolerance(text)


def test_a_bias_of_zero_is_kept_where_another_output_has_none():
    assert Figures(bias=0.0).worst_with(Figures()).bias == 0.0
    assert Figures(bias=0.5).worst_with(Figures(bias=-0.75)).bias == -0.75


def test_maps_are_compared_key_by_key():
    nan = {1: np.nan, 2: 0.5}
    assert compare([[nan]], [[{1: np.nan, 2: 0.5}]], parse_tolerance("exact")).verdict is WITHIN
    assert compare([[nan]], [[{1: np.nan, 2: 0.25}]], parse_tolerance("exact")).verdict is DIFFERENT
    assert compare([[nan]], [[{1: np.nan}]], parse_tolerance("exact")).verdict is DIFFERENT
