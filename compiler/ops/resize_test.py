import itertools
import math

import numpy as np
import pytest
import torch
from onnx import helper
from onnx.reference import ReferenceEvaluator

from compiler.errors import InvalidAttribute, TypeMismatch, UnsupportedType
from compiler.ir import F32, I64, Call, tensor
from compiler.ops.harness_test import run, run_decomposed
from compiler.ops.resize import Resize, new_size

RNG = np.random.default_rng(29)
WAYS = pytest.mark.parametrize("way", [run, run_decomposed])
NAMES = {"coordinates": "coordinate_transformation_mode", "cubic_coefficient": "cubic_coeff_a",
         "policy": "keep_aspect_ratio_policy"}  # fmt: skip


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def reference(x, roi=None, scales=None, sizes=None, **attributes):
    given = {"x": x, "roi": roi, "scales": scales, "sizes": sizes}
    names = [name if value is not None else "" for name, value in given.items()]
    given = {name: value for name, value in given.items() if value is not None}
    renamed = {NAMES.get(key, key): int(value) if value is True else value for key, value in attributes.items()}
    node = helper.make_node("Resize", names, ["y"], **renamed)
    types = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph([node], "g", types, [helper.make_tensor_value_info("y", element, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    return ReferenceEvaluator(model).run(None, given)[0]


MODES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners"]
SCALES = [np.array(pair, np.float32) for pair in ([2.0, 0.6], [0.55, 2.5], [1.0, 0.25])]


@WAYS
@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize("coordinates", MODES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_coordinates_follow_onnx(way, mode, coordinates, scales):
    x = normal(5, 7)
    found = way("resize", x, None, scales, mode=mode, coordinates=coordinates)
    expected = reference(x, scales=scales, mode=mode, coordinates=coordinates)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


@WAYS
@pytest.mark.parametrize(
    ("nearest", "coordinates"),
    list(itertools.product(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"], ["half_pixel", "asymmetric"])),
)
def test_nearest_modes_decide_ties(way, nearest, coordinates):
    x, sizes = normal(1, 1, 6, 4), np.array([1, 1, 9, 8], np.int64)
    found = way("resize", x, None, None, sizes, nearest_mode=nearest, coordinates=coordinates)
    np.testing.assert_array_equal(found, reference(x, sizes=sizes, nearest_mode=nearest, coordinates=coordinates))


@WAYS
@pytest.mark.parametrize("exclude", [False, True])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias_and_exclude_outside_follow_onnx(way, mode, antialias, exclude):
    x, scales = normal(9, 8), np.array([0.4, 1.5], np.float32)
    attributes = {"mode": mode, "antialias": antialias, "exclude_outside": exclude, "cubic_coefficient": -0.5}
    found = way("resize", x, None, scales, **attributes)
    expected = reference(x, scales=scales, **{key: value for key, value in attributes.items() if value is not False})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


@WAYS
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crop_extrapolates_outside(way, mode):
    x, sizes = normal(1, 1, 4, 4), np.array([1, 1, 5, 3], np.int64)
    roi = np.array([0, 0, 0.4, -0.3, 1, 1, 1.2, 0.8], np.float32)
    attributes = {"mode": mode, "coordinates": "tf_crop_and_resize", "extrapolation_value": 10.0}
    found = way("resize", x, roi, None, sizes, **attributes)
    np.testing.assert_allclose(found, reference(x, roi=roi, sizes=sizes, **attributes), rtol=1e-5, atol=2e-6)
    assert np.any(found == 10)


@WAYS
@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_policies_and_axes_follow_onnx(way, policy):
    x, sizes = normal(1, 2, 6, 4), np.array([9, 8], np.int64)
    attributes = {"axes": (2, 3), "policy": policy, "mode": "linear"}
    found = way("resize", x, None, None, sizes, **attributes)
    np.testing.assert_allclose(found, reference(x, sizes=sizes, **attributes), rtol=1e-5, atol=2e-6)


@WAYS
def test_axes_in_another_order(way):
    x, sizes = normal(2, 3, 4), np.array([8, 6], np.int64)
    found = way("resize", x, None, None, sizes, axes=(-1, 1))
    np.testing.assert_array_equal(found, np.repeat(np.repeat(x, 2, 1), 2, 2))


@WAYS
@pytest.mark.parametrize("align", [False, True])
def test_linear_is_torchs_in_float64(way, align):
    x = RNG.standard_normal((1, 2, 5, 4))
    expected = torch.nn.functional.interpolate(torch.tensor(x), (8, 3), mode="bilinear", align_corners=align).numpy()
    coordinates = "align_corners" if align else "half_pixel"
    sizes = np.array([1, 2, 8, 3], np.int64)
    found = way("resize", x, None, None, sizes, mode="linear", coordinates=coordinates)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@WAYS
def test_integers_are_rounded_and_saturated(way):
    x = np.array([[0, 255, 255, 0]], np.uint8)
    sizes = np.array([1, 8], np.int64)
    np.testing.assert_array_equal(
        way("resize", x, None, None, sizes, mode="cubic"), reference(x, sizes=sizes, mode="cubic")
    )
    np.testing.assert_array_equal(way("resize", x, None, None, sizes), np.repeat(x, 2, 1))


@WAYS
def test_the_same_size_at_another_scale_still_moves_elements(way):
    x, scales = np.arange(3, dtype=np.float32), np.array([1.3], np.float32)
    found = way("resize", x, None, scales, mode="linear", coordinates="asymmetric")
    np.testing.assert_allclose(found, np.arange(3) / 1.3, rtol=1e-6)


@WAYS
def test_half_is_rounded_once(way):
    x, sizes = normal(6, 6).astype(np.float16), np.array([13, 11], np.int64)
    exact = run("resize", x.astype(np.float64), None, None, sizes, mode="cubic")
    np.testing.assert_allclose(
        way("resize", x, None, None, sizes, mode="cubic").astype(float), exact, rtol=6e-4, atol=1e-5
    )


def test_sizes_from_scales_are_taken_in_float32():
    assert new_size(10, float(np.float32(1.3))) == 13
    assert new_size(5, 0.5) == 2


def test_wrong_numbers_of_entries_are_named():
    with pytest.raises(TypeMismatch, match="3 scales or sizes and 4 roi entries for 2 axes"):
        run("resize", normal(2, 2), None, np.ones(3, np.float32))
    with pytest.raises(TypeMismatch, match="neither scales nor sizes"):
        run("resize", normal(2, 2))
    with pytest.raises(InvalidAttribute, match="antialias with mode 'nearest'"):
        run("resize", normal(2, 2), None, np.ones(2, np.float32), antialias=True)


def test_symbolic_dims():
    definition = Resize.instance()
    types = [tensor(F32, ("N", 3, "H", 4)), None, tensor(F32, (4,))]
    call = Call(types, definition.complete({}), [None, None, np.array([1, 1, 2, 2], np.float32)])
    assert definition.infer(call) == (tensor(F32, ("N", 3, "?", 8)),)
    types = [tensor(F32, ("N", 3, "H", 4)), None, None, tensor(I64, (2,))]
    call = Call(types, definition.complete({"axes": (2, 3)}), [None, None, None, np.array([5, 6])])
    assert definition.infer(call) == (tensor(F32, ("N", 3, 5, 6)),)
    call = Call(types, definition.complete({"axes": (2, 3)}))
    assert definition.infer(call) == (tensor(F32, ("N", 3, "?", "?")),)


@WAYS
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_dim_of_no_elements_stays_empty_and_gives_none(way, mode):
    x, scales = np.zeros((2, 0), np.float32), np.array([2, 2], np.float32)
    assert way("resize", x, None, scales, mode=mode).shape == (4, 0)
    with pytest.raises(TypeMismatch, match="from a dim of none"):
        way("resize", x, None, None, np.array([2, 3]), mode=mode)


@pytest.mark.parametrize("scale", [math.nan, math.inf, -math.inf, 0.0, -1.0])
def test_a_scale_that_is_no_positive_number_is_refused(scale):
    with pytest.raises(InvalidAttribute, match="expected a finite number greater than 0"):
        new_size(4, scale)


@WAYS
@pytest.mark.parametrize("element", ["bool", "complex64", "complex128", "object", "uint16", "float16"])
def test_nearest_takes_elements_of_any_type_as_they_are(way, element):
    places = np.arange(12).reshape(3, 4)
    others = {
        "object": places.astype(str),
        "bool": places % 3 == 0,
        "complex64": places * 2j,
        "complex128": places * 2j,
    }
    x = others.get(element, places).astype(element)
    attributes = {"mode": "nearest", "coordinates": "asymmetric", "nearest_mode": "floor"}
    found = way("resize", x, None, np.array([2.0, 0.5], np.float32), **attributes)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x.repeat(2, 0)[:, ::2])


@WAYS
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_complex_numbers_are_interpolated_by_part(way, mode):
    x = normal(4, 5) + 1j * normal(4, 5)
    scales = np.array([1.5, 0.7], np.float32)
    parts = [reference(part, scales=scales, mode=mode) for part in (x.real, x.imag)]
    found = way("resize", x, None, scales, mode=mode)
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found, parts[0] + 1j * parts[1], rtol=1e-5, atol=2e-6)


@WAYS
def test_elements_outside_of_other_types(way):
    """Extrapolated by the value as ONNX converts it; strings are empty there."""
    roi, sizes = np.array([0.0, 2.0], np.float32), np.array([3])
    attributes = {"mode": "nearest", "coordinates": "tf_crop_and_resize"}
    found = way("resize", np.array([False, False]), roi, None, sizes, extrapolation_value=10.0, **attributes)
    np.testing.assert_array_equal(found, [False, False, True])
    strings = np.array(["a", "b"], object)
    np.testing.assert_array_equal(way("resize", strings, roi, None, sizes, **attributes), ["a", "b", ""])
    with pytest.raises(UnsupportedType, match="which is no string"):
        way("resize", strings, roi, None, sizes, extrapolation_value=10.0, **attributes)


@pytest.mark.parametrize("x", [np.array([True, False]), np.array(["a", "b"], object)])
def test_no_sums_of_booleans_and_strings(x):
    with pytest.raises(TypeMismatch, match="no sums; expected 'nearest'"):
        run("resize", x, None, np.array([2.0], np.float32), mode="linear")
