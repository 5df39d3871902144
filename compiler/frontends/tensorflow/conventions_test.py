"""The conventions in which TensorFlow differs from the IR, each held to TensorFlow."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="the tests of the TensorFlow frontend need TensorFlow")

from compiler.errors import UnsupportedOperator, ValueNeeded  # noqa: E402
from compiler.frontends.tensorflow import covered_operators, import_tensorflow  # noqa: E402
from compiler.frontends.tensorflow.harness_test import check, traced  # noqa: E402

R = tf.raw_ops
RNG = np.random.default_rng(7)
NAN, INF = np.nan, np.inf


def floats(*shape):
    return RNG.standard_normal(shape, np.float32)


def test_every_converter_is_of_a_raw_operator():
    assert [name for name in sorted(covered_operators()) if not hasattr(R, name)] == []
    assert len(covered_operators()) >= 320


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("FloorDiv", np.int8),
        ("FloorMod", np.int8),
        ("TruncateDiv", np.int8),
        ("FloorDiv", np.int32),
        ("FloorMod", np.int64),
        ("TruncateMod", np.int32),
        ("Mod", np.int64),
    ],
)
def test_the_signs_of_quotients_and_remainders(name, dtype):
    a, b = np.array([7, -7, 7, -7, -128, 126, 0], dtype), np.array([3, 3, -3, -3, 3, -128, -5], dtype)
    check(lambda x, y: getattr(R, name)(x=x, y=y), a, b)


@pytest.mark.parametrize("name", ["MulNoNan", "DivNoNan", "Xdivy", "Maximum", "FloorMod", "SquaredDifference"])
def test_special_values_in_pairs(name):
    values = np.array([0, -0.0, 1, -2.5, INF, -INF, NAN], np.float32)
    check(lambda x, y: getattr(R, name)(x=x, y=y), np.repeat(values, 7), np.tile(values, 7))


@pytest.mark.parametrize("name", ["Lgamma", "Digamma", "Erfc", "Erfinv", "Ndtri"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_functions(name, dtype):
    inner = name in {"Erfinv", "Ndtri"}
    x = np.linspace(0.01, 0.99, 41) if inner else np.concatenate([np.linspace(-3.7, 12, 57), [INF, NAN]])
    check(lambda v: getattr(R, name)(x=v), x.astype(dtype), tolerance=3e-5 if dtype == np.float32 else 1e-9)


def test_neighbours_of_floats():
    values = np.array([0, -0.0, 1, -1, INF, -INF, NAN, 1e-45, 3.4e38], np.float32)
    check(lambda x, y: R.NextAfter(x1=x, x2=y), np.repeat(values, 9), np.tile(values, 9), tolerance=0)


@pytest.mark.parametrize("target", [tf.uint8, tf.float64, tf.int32])
def test_bits_of_types_of_other_widths(target):
    check(lambda x: R.Bitcast(input=x, type=target), floats(3, 2))


@pytest.mark.parametrize("padding", ["SAME", "VALID", "EXPLICIT"])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (2, 2), (3, 2)])
def test_padding_with_strides_and_dilations(padding, stride, dilation):
    check(
        lambda x, w: R.Conv2D(
            input=x,
            filter=w,
            strides=[1, stride, stride, 1],
            dilations=[1, dilation, dilation, 1],
            padding=padding,
            explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0] if padding == "EXPLICIT" else [],
        ),
        floats(2, 7, 8, 4),
        floats(3, 2, 2, 6),
        tolerance=1e-5,
    )


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("sizes", [(7, 8), (8, 7), (9, 9)])
def test_the_sizes_of_transposed_convolutions(padding, sizes):
    x = np.zeros((2, *sizes, 3), np.float32)
    window = {"strides": [1, 3, 2, 1], "padding": padding}
    w = floats(3, 2, 3, 5)
    gradient = floats(*R.Conv2D(input=x, filter=w, **window).shape)
    check(
        lambda w, g: R.Conv2DBackpropInput(input_sizes=x.shape, filter=w, out_backprop=g, **window),
        w,
        gradient,
        tolerance=1e-5,
    )
    check(
        lambda x, g: R.Conv2DBackpropFilter(input=x, filter_sizes=w.shape, out_backprop=g, **window),
        floats(*x.shape),
        gradient,
        tolerance=1e-4,
    )


def test_channels_of_depthwise_convolutions():
    window = {"strides": [1, 2, 2, 1], "padding": "SAME"}
    check(lambda x, w: R.DepthwiseConv2dNative(input=x, filter=w, **window), floats(2, 7, 8, 3), floats(3, 2, 3, 2))


@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_where_the_greatest_elements_were(batch, padding):
    check(
        lambda x: R.MaxPoolWithArgmax(
            input=x, ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding=padding, include_batch_in_index=batch
        ),
        floats(2, 7, 8, 3),
    )


@pytest.mark.parametrize("convention", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
@pytest.mark.parametrize("kind", ["Bilinear", "NearestNeighbor", "Bicubic"])
@pytest.mark.parametrize("size", [[7, 9], [3, 2], [1, 1], [10, 12]])
def test_conventions_of_resizing(kind, convention, size):
    check(lambda x: getattr(R, f"Resize{kind}")(images=x, size=size, **convention), floats(1, 5, 6, 3), tolerance=1e-5)


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_crops_beyond_the_image(method):
    boxes = np.array([[0, 0, 1, 1], [0.2, 0.3, 0.7, 0.9], [-0.2, 0.1, 1.3, 0.5], [0.8, 0.9, 0.1, 0.2]], np.float32)
    options = {"box_ind": [0, 1, 1, 0], "crop_size": [3, 4], "method": method, "extrapolation_value": 9.0}
    check(lambda x, b: R.CropAndResize(image=x, boxes=b, **options), floats(2, 6, 7, 3), boxes, tolerance=1e-5)


@pytest.mark.parametrize(
    "cut",
    [
        lambda x: x[0, ..., 1:, tf.newaxis],
        lambda x: x[::-1, -1, ::2],
        lambda x: x[1:0, :, 2:-3:-1],
        lambda x: x[..., -2],
        lambda x: x[tf.newaxis, :, -9:9],
    ],
)
def test_masks_of_strided_slices(cut):
    check(cut, floats(2, 3, 4))


@pytest.mark.parametrize("place", [0, 1, -1])
def test_bounds_of_slices_that_are_data(place):
    check(lambda x, n: (x[:, n], x[:n, n:]), floats(2, 3, 4), np.int32(place))


@pytest.mark.parametrize(("axis", "batch"), [(1, 1), (2, 1), (2, 2), (-1, 0)])
def test_batches_of_gather(axis, batch):
    shape = (2, 3, 4, 5)
    indices = RNG.integers(0, 3, (2, 3, 2) if batch == 2 else (2, 5), np.int32)
    check(lambda x, i: R.GatherV2(params=x, indices=i, axis=axis, batch_dims=batch), floats(*shape), indices)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("axis", [0, -1])
def test_one_hot_of_indices_outside(dtype, axis):
    indices = np.array([[0, 3, 4], [1, 200, 2]]).astype(dtype)
    if dtype != np.uint8:
        indices[0, 0] = -1
    check(lambda i: R.OneHot(indices=i, depth=4, on_value=2.0, off_value=-1.0, axis=axis), indices)


@pytest.mark.parametrize("name", ["Add", "Sub", "Max", "Min"])
def test_several_updates_of_one_place(name):
    places = np.array([[0], [3], [0], [3], [1], [0]], np.int32)
    operator = getattr(R, f"TensorScatter{name}")
    check(lambda x, u: operator(tensor=x, indices=places, updates=u), floats(4, 3), floats(6, 3))


@pytest.mark.parametrize("name", ["Sum", "Prod", "Max", "Min", "Mean"])
def test_segments_without_rows(name):
    ids = np.array([0, 0, 2, 2, 5], np.int32)
    check(lambda x: getattr(R, f"Segment{name}")(data=x, segment_ids=ids), floats(5, 3))


@pytest.mark.parametrize("name", ["Sum", "Prod", "Max", "Min"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_unsorted_segments_drop_negative_ones(name, dtype):
    ids = np.array([3, -1, 0, 3, 5], np.int32)
    operator = getattr(R, f"UnsortedSegment{name}")
    check(lambda x, i: operator(data=x, segment_ids=i, num_segments=7), (floats(5, 2) * 9).astype(dtype), ids)


@pytest.mark.parametrize("align", ["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"])
@pytest.mark.parametrize("k", [[-1, 1], [0, 2], [1, 1], [-2, -1]])
def test_packed_diagonals(align, k):
    x = floats(2, 3, 4)
    packed = check(lambda x: R.MatrixDiagPartV3(input=x, k=k, padding_value=7.0, align=align), x) and np.asarray(
        R.MatrixDiagPartV3(input=x, k=k, padding_value=7.0, align=align)
    )
    sizes = {"num_rows": 3, "num_cols": 4, "padding_value": 5.0}
    check(lambda d: R.MatrixDiagV3(diagonal=d, k=k, align=align, **sizes), packed)
    check(lambda x, d: R.MatrixSetDiagV3(input=x, diagonal=d, k=k, align=align), floats(2, 3, 4), packed)


@pytest.mark.parametrize("limits", [(-1.1, 3.0), (1.0, 3.0), (-3.0, -1.0), (0.0, 0.0)])
@pytest.mark.parametrize("narrow", [True, False])
def test_nudged_ranges_of_fake_quantization(limits, narrow):
    low, high = map(np.float32, limits)
    options = {"num_bits": 5, "narrow_range": narrow}
    check(lambda x, a, b: R.FakeQuantWithMinMaxVars(inputs=x, min=a, max=b, **options), floats(40) * 2, low, high)


@pytest.mark.parametrize("length", [5, 6, 7])
def test_fourier_transforms_cut_and_filled_up(length):
    check(lambda x: R.RFFT(input=x, fft_length=[length]), floats(2, 7))
    spectrum = (floats(2, 6) + 1j * floats(2, 6)).astype(np.complex64)
    check(lambda x: R.IRFFT(input=x, fft_length=[length]), spectrum)
    check(lambda x: R.FFT2D(input=x) + x, spectrum)


@pytest.mark.parametrize(("exclusive", "reverse"), [(True, False), (False, True), (True, True)])
def test_running_sums_from_either_end(exclusive, reverse):
    check(lambda x: R.Cumsum(x=x, axis=-1, exclusive=exclusive, reverse=reverse), floats(2, 5))


def test_einstein_sums_with_an_ellipsis():
    check(lambda a, b: R.Einsum(inputs=[a, b], equation="...ij,kj->...ik"), floats(2, 3, 4), floats(5, 4))


def test_an_axis_that_is_an_input_is_asked_for_by_name():
    with pytest.raises(ValueNeeded) as caught:
        import_tensorflow(traced(lambda x, axis: tf.reduce_sum(x, axis) * 2, floats(2, 3), np.int32(1)))
    assert caught.value.value == "axis"


def test_soft_suppression_is_refused_by_attribute():
    def forward(boxes, scores):
        return tf.image.non_max_suppression_with_scores(boxes, scores, 3, soft_nms_sigma=0.5)

    with pytest.raises(UnsupportedOperator, match="soft suppression"):
        import_tensorflow(traced(forward, floats(4, 4), floats(4)))


@pytest.mark.parametrize("kernel", ["lanczos1", "lanczos3", "lanczos5", "triangle", "keyscubic", "mitchellcubic"])
@pytest.mark.parametrize("antialias", [True, False])
def test_kernels_that_widen_where_an_image_shrinks(kernel, antialias):
    options = {"size": [4, 9], "scale": [0.6, 1.4], "translation": [0.3, -0.7]}
    check(
        lambda x: R.ScaleAndTranslate(images=x, kernel_type=kernel, antialias=antialias, **options),
        floats(1, 7, 6, 2),
        tolerance=1e-5,
    )
