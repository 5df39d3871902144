"""Layers against Caffe's definitions, written out in numpy; conformance/ has them against OpenCV."""

import numpy as np
import pytest

from compiler.errors import InvalidModel, UnsupportedOperator
from compiler.frontends.caffe.harness_test import draw, layer


def pooled_as_caffe(x, kernel, stride, pad, mode):
    """Caffe's PoolingLayer, loop by loop (pooling_layer.cpp)."""
    n, c, h, w = x.shape
    counts = []
    for size in (h, w):
        count = int(np.ceil((size + 2 * pad - kernel) / stride)) + 1
        if pad and (count - 1) * stride >= size + pad:
            count -= 1
        counts.append(count)
    y = np.zeros((n, c, *counts))
    for i in range(counts[0]):
        for j in range(counts[1]):
            top, left = i * stride - pad, j * stride - pad
            bottom, right = min(top + kernel, h + pad), min(left + kernel, w + pad)
            area = (bottom - top) * (right - left)
            part = x[:, :, max(top, 0) : min(bottom, h), max(left, 0) : min(right, w)]
            if mode == "MAX":
                y[:, :, i, j] = part.max((2, 3)) if part.size else np.finfo(np.float32).min
            else:
                with np.errstate(all="ignore"):
                    y[:, :, i, j] = part.sum((2, 3)) / np.float64(area)
    return y


@pytest.mark.parametrize("mode", ["MAX", "AVE"])
@pytest.mark.parametrize(
    ("kernel", "stride", "pad"), [(2, 2, 0), (3, 2, 0), (3, 2, 1), (2, 3, 1), (3, 3, 2), (1, 3, 0)]
)
@pytest.mark.parametrize("size", [5, 6, 7])
def test_pooling_rounds_up_and_clips_as_caffe_does(mode, kernel, stride, pad, size):
    x = draw(1, 2, size, size + 1)
    parameters = f"pooling_param {{ pool: {mode} kernel_size: {kernel} stride: {stride} pad: {pad} }}"
    wanted = pooled_as_caffe(x.astype(np.float64), kernel, stride, pad, mode)
    np.testing.assert_allclose(layer("Pooling", x, parameters=parameters)[0], wanted, rtol=1e-5, atol=1e-6)


def test_pooling_rounds_down_where_the_text_says_so():
    parameters = "pooling_param { kernel_size: 2 stride: 2 round_mode: FLOOR }"
    assert layer("Pooling", draw(1, 1, 5, 5), parameters=parameters)[0].shape == (1, 1, 2, 2)


def test_the_second_top_of_a_maximum_is_its_place_in_the_channel():
    x = draw(2, 2, 4, 4)
    values, places = layer("Pooling", x, parameters="pooling_param { kernel_size: 2 stride: 2 }", tops=2)
    flat = x.reshape(2, 2, 16)
    np.testing.assert_array_equal(
        np.take_along_axis(flat, places.reshape(2, 2, 4).astype(int), 2).reshape(values.shape), values
    )


def test_a_scale_factor_of_zero_makes_statistics_zero():
    x = draw(1, 2, 3, 3)
    (found,) = layer("BatchNorm", x, model=[[5.0, 6.0], [7.0, 8.0], [0.0]], parameters="batch_norm_param { eps: 0.25 }")
    np.testing.assert_allclose(found, x / 0.5, rtol=1e-6)


def test_statistics_are_over_the_scale_factor():
    x = draw(1, 2, 3, 3)
    (found,) = layer("BatchNorm", x, model=[[2.0, 4.0], [2.0, 8.0], [2.0]], parameters="batch_norm_param { eps: 0 }")
    mean, variance = np.array([1.0, 2.0]).reshape(1, 2, 1, 1), np.array([1.0, 4.0]).reshape(1, 2, 1, 1)
    np.testing.assert_allclose(found, (x - mean) / np.sqrt(variance), rtol=1e-5, atol=1e-6)


def test_statistics_of_the_batch_where_the_text_asks_for_them():
    x = draw(2, 2, 3, 3)
    (found,) = layer("BatchNorm", x, parameters="batch_norm_param { use_global_stats: false eps: 0 }")
    wanted = (x - x.mean((0, 2, 3), keepdims=True)) / x.std((0, 2, 3), keepdims=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("out", [False, True])
def test_argmax_takes_the_last_of_equals(out):
    x = np.array([[1.0, 3.0, 3.0, 0.0]], np.float32)
    parameters = f"argmax_param {{ top_k: 3 out_max_val: {str(out).lower()} }}"
    (found,) = layer("ArgMax", x, parameters=parameters)
    np.testing.assert_array_equal(found[:, 0], [[2, 1, 0]])
    if out:
        np.testing.assert_array_equal(found[:, 1], [[3, 3, 1]])
    assert layer("ArgMax", x, parameters="argmax_param { axis: 1 }")[0].tolist() == [[2]]


def lstm_as_caffe(x, cont, w, b, r, h, c):
    hs = []
    for step in range(x.shape[0]):
        gates = x[step] @ w.T + b + (h * cont[step][:, None]) @ r.T
        i, f, o, g = np.split(gates, 4, axis=1)
        i, f, o = (1 / (1 + np.exp(-v)) for v in (i, f, o))
        c = cont[step][:, None] * f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        hs.append(h)
    return np.stack(hs), h, c


def test_lstm_starts_anew_where_cont_is_zero():
    x, cont = draw(3, 2, 4), np.array([[0, 0], [1, 0], [1, 1]], np.float32)
    w, b, r = draw(20, 4), draw(20), draw(20, 5)
    (found,) = layer("LSTM", x, cont, model=[w, b, r], parameters="recurrent_param { num_output: 5 }")
    wanted, *_ = lstm_as_caffe(x, cont, w, b, r, np.zeros((2, 5)), np.zeros((2, 5)))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_lstm_with_a_static_input_and_exposed_states():
    x, cont, static = draw(2, 2, 4), np.ones((2, 2), np.float32), draw(2, 3)
    h, c = draw(1, 2, 5, seed=1), draw(1, 2, 5, seed=2)
    w, b, s, r = draw(20, 4), draw(20), draw(20, 3), draw(20, 5)
    parameters = "recurrent_param { num_output: 5 expose_hidden: true }"
    found = layer("LSTM", x, cont, static, h, c, model=[w, b, s, r], parameters=parameters, tops=3)
    joined = np.concatenate([x, np.broadcast_to(static, (2, *static.shape))], 2)
    wanted, last_h, last_c = lstm_as_caffe(joined, cont, np.concatenate([w, s], 1), b, r, h[0], c[0])
    for one, other in zip(found, (wanted, last_h[None], last_c[None]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_filter_keeps_the_samples_that_the_selector_names():
    x, y = draw(4, 3), draw(4, 2, 2)
    found = layer("Filter", x, y, np.array([1.0, 0.0, 0.0, 2.0]), tops=2)
    np.testing.assert_array_equal(found[0], x[[0, 3]])
    np.testing.assert_array_equal(found[1], y[[0, 3]])


def test_a_layer_after_a_size_that_data_decides_is_refused():
    from compiler.frontends.caffe.harness_test import inputs, run

    text = inputs((4, 3), (4,)) + 'layer { name: "f" type: "Filter" bottom: "a" bottom: "b" top: "y" }'
    text += 'layer { name: "t" type: "Tile" bottom: "y" top: "z" tile_param { tiles: 2 } }'
    with pytest.raises(UnsupportedOperator, match="only data decides"):
        run(text, None, draw(4, 3), draw(4))


def test_deconvolution_with_groups_scatters_each_value():
    x, w = draw(1, 4, 3, 3), draw(4, 1, 2, 2)
    parameters = "convolution_param { num_output: 2 kernel_size: 2 stride: 2 group: 2 bias_term: false }"
    (found,) = layer("Deconvolution", x, model=[w], parameters=parameters)
    wanted = np.zeros((1, 2, 6, 6))
    for channel in range(4):
        for i in range(3):
            for j in range(3):
                wanted[0, channel // 2, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2] += x[0, channel, i, j] * w[channel, 0]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_boxes_are_decoded_suppressed_and_sorted_by_label_and_score():
    priors = np.array([[0.1, 0.1, 0.3, 0.3], [0.12, 0.1, 0.32, 0.3], [0.6, 0.6, 0.9, 0.9]], np.float32)
    prior = np.stack([priors.ravel(), np.full(12, 0.1)])[None]
    scores = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]], np.float32)
    parameters = """detection_output_param { num_classes: 2 code_type: CENTER_SIZE confidence_threshold: 0.5
                    keep_top_k: 2 nms_param { nms_threshold: 0.45 top_k: 3 } }"""
    (found,) = layer("DetectionOutput", np.zeros((1, 12)), scores.reshape(1, 6), prior, parameters=parameters)
    wanted = [[0, 1, 0.9, *priors[0]], [0, 1, 0.7, *priors[2]]]
    np.testing.assert_allclose(found, np.array(wanted, np.float32)[None, None], rtol=1e-6)


def test_no_detection_is_a_row_of_minus_one():
    prior = np.full((1, 2, 4), 0.1)
    parameters = "detection_output_param { num_classes: 2 confidence_threshold: 0.5 }"
    (found,) = layer("DetectionOutput", np.zeros((1, 4)), np.zeros((1, 2)), prior, parameters=parameters)
    np.testing.assert_array_equal(found, [[[[0, -1, -1, -1, -1, -1, -1]]]])


@pytest.mark.parametrize(
    ("kind", "shapes", "parameters", "message"),
    [
        (
            "Pooling",
            [(1, 1, 4, 4)],
            "pooling_param { kernel_size: 2 pad: 2 }",
            "padding .* not smaller than the kernel",
        ),
        ("Pooling", [(1, 1, 4)], "pooling_param { kernel_size: 2 }", "has 3 dims; expected 4"),
        ("Reshape", [(2, 3)], "reshape_param { shape { dim: 4 dim: -1 } }", "does not hold the bottom's 6 values"),
        ("Slice", [(1, 5)], "slice_param { slice_point: 2 slice_point: 1 }", "2 of slice_point; expected 0"),
        ("Eltwise", [(1, 2), (1, 3)], "", "bottoms have shapes"),
        ("LRN", [(1, 4, 2, 2)], "lrn_param { local_size: 4 }", "expected an odd number"),
        (
            "Convolution",
            [(1, 1, 2, 2)],
            "convolution_param { num_output: 1 kernel_size: 3 }",
            "smaller than the kernel",
        ),
        ("Softmax", [(1, 2)], "softmax_param { axis: 2 }", "axis is 2; expected -2 to 1"),
        ("Crop", [(1, 2, 3, 3), (1, 2, 2, 2)], "crop_param { offset: 2 }", "cannot be cut to 2 after 2"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(kind, shapes, parameters, message):
    with pytest.raises(InvalidModel, match=message):
        layer(kind, *(draw(*shape) for shape in shapes), parameters=parameters, model=[draw(1, 1, 3, 3), draw(1)])


def test_stochastic_pooling_is_refused():
    with pytest.raises(UnsupportedOperator, match="random"):
        layer("Pooling", draw(1, 1, 4, 4), parameters="pooling_param { pool: STOCHASTIC kernel_size: 2 }")


def test_dropout_of_a_fork_scales_where_it_does_not_while_training():
    x = draw(2, 3)
    (found,) = layer("Dropout", x, parameters="dropout_param { dropout_ratio: 0.25 scale_train: false }")
    np.testing.assert_array_equal(found, x * np.float32(0.75))


def test_several_tops_of_dummy_data_have_their_own_constants():
    from compiler.frontends.caffe.harness_test import run

    text = """layer { name: "d" type: "DummyData" top: "a" top: "b" dummy_data_param {
        shape { dim: 2 } shape { dim: 1 dim: 3 } data_filler { value: 1 } data_filler { value: -2 } } }"""
    a, b = run(text, None)
    np.testing.assert_array_equal(a, [1, 1])
    np.testing.assert_array_equal(b, [[-2, -2, -2]])
    with pytest.raises(UnsupportedOperator, match="filler 'gaussian' draws random numbers"):
        run(text.replace("data_filler { value: 1 }", 'data_filler { type: "gaussian" }'), None)


def test_several_bottoms_of_a_convolution_share_its_weights():
    x, y, w = draw(1, 2, 4, 4), draw(1, 2, 5, 3), draw(3, 2, 1, 1)
    parameters = "convolution_param { num_output: 3 kernel_size: 1 bias_term: false }"
    for found, given in zip(layer("Convolution", x, y, model=[w], parameters=parameters, tops=2), (x, y), strict=True):
        np.testing.assert_allclose(found, np.einsum("nchw,oc->nohw", given, w[..., 0, 0]), rtol=1e-5, atol=1e-6)
