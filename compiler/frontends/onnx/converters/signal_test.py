import numpy as np
import pytest

from compiler.errors import InvalidModel, UnsupportedOperator
from compiler.frontends.onnx import import_model
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, node_model, run_node
from compiler.ops.interpreter import interpret

RANDOM = np.random.default_rng(19)
REAL = RANDOM.normal(size=(2, 7, 5, 1)).astype(np.float32)
COMPLEX = RANDOM.normal(size=(2, 7, 5, 2)).astype(np.float32)


def pairs(values):
    return np.stack([values.real, values.imag], -1)


def joined(array):
    wide = array.astype(np.float64)
    return wide[..., 0] + 1j * wide[..., 1] if array.shape[-1] == 2 else wide[..., 0]


def transform(x, opset, axis, length, **attributes):
    if opset < 20:
        return run_node("DFT", [x, np.array(length)], opset, known=[1], axis=axis, **attributes)[0]
    return run_node("DFT", [x, np.array(length), np.array(axis)], opset, known=[1, 2], **attributes)[0]


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize("x", [REAL, COMPLEX], ids=["real", "complex"])
@pytest.mark.parametrize(("axis", "length"), [(1, 7), (2, 5), (1, 4), (1, 10), (-2, 5)])
def test_fourier_transform_and_its_inverse(x, opset, axis, length):
    place = axis % 4
    np.testing.assert_allclose(
        transform(x, opset, axis, length), pairs(np.fft.fft(joined(x), length, place)), atol=2e-5
    )
    inverse = transform(x, opset, axis, length, inverse=1)
    np.testing.assert_allclose(inverse, pairs(np.fft.ifft(joined(x), length, place)), atol=2e-5)


@pytest.mark.parametrize("length", [7, 4, 9])
def test_half_a_spectrum(length):
    np.testing.assert_allclose(
        transform(REAL, 20, 1, length, onesided=1), pairs(np.fft.rfft(joined(REAL), length, 1)), atol=2e-5
    )
    # The first element of a real signal's spectrum is real, and so is the middle one of an even length.
    half = pairs(np.fft.rfft(joined(REAL), length, 1)).astype(np.float32)
    back = transform(half, 20, 1, length, onesided=1, inverse=1)
    np.testing.assert_allclose(back[..., 0], np.fft.irfft(joined(half), length, 1), atol=2e-5)


def test_defaults():
    spectrum = pairs(np.fft.fft(joined(REAL), axis=1))
    np.testing.assert_allclose(run_node("DFT", [REAL], 17)[0], spectrum, atol=2e-5)
    np.testing.assert_allclose(run_node("DFT", [REAL], 20)[0], pairs(np.fft.fft(joined(REAL), axis=2)), atol=2e-5)


@pytest.mark.parametrize(
    ("x", "attributes"), [(COMPLEX, {"onesided": 1}), (REAL, {"onesided": 1, "inverse": 1}), (REAL, {"axis": 3})]
)
def test_wrong_transforms_are_refused(x, attributes):
    with pytest.raises(InvalidModel):
        run_node("DFT", [x], 17, **attributes)


SIGNAL = RANDOM.normal(size=(2, 20, 1)).astype(np.float32)


@pytest.mark.parametrize("onesided", [0, 1])
def test_short_time_fourier_transform(onesided):
    window = np.hanning(8).astype(np.float32)
    step, length = np.array(3), np.array(8)
    agrees_with_onnxruntime("STFT", [SIGNAL, step, window, length], 17, known=[1, 3], onesided=onesided)
    agrees_with_onnxruntime("STFT", [SIGNAL, step, window], 17, known=[1], onesided=onesided)


def test_frames_that_do_not_fit_are_refused():
    with pytest.raises(InvalidModel, match="do not fit"):
        run_node("STFT", [SIGNAL, np.array(3), None, np.array(21)], 17, known=[1, 3])


@pytest.mark.parametrize("known", [range(5), range(2)])
@pytest.mark.parametrize("band", [(8, 16, 8192, 0, 4096), (4, 33, 8000, 100, 3000), (20, 16, 8000, 0, 100)])
def test_mel_weights_of_a_band_known_before_or_while_running(band, known):
    arrays = [*map(np.array, band[:3]), *(np.array(edge, np.float32) for edge in band[3:])]
    agrees_with_onnxruntime("MelWeightMatrix", arrays, 17, known=known)


@pytest.mark.parametrize(
    ("block", "attributes"),
    [
        ((2, 3), {}),
        ((2, 2), {"strides": [2, 1], "pads": [1, 0, 0, 1]}),
        ((2, 2), {"dilations": [2, 2]}),
        ((2, 3), {"strides": [3, 2]}),
    ],
)
def test_blocks_are_summed_into_an_image(block, attributes):
    image = (5, 7)
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    pads = attributes.get("pads", [0] * 4)
    counts = [(image[d] + pads[d] + pads[2 + d] - (block[d] - 1) * dilations[d] - 1) // strides[d] + 1 for d in (0, 1)]
    columns = RANDOM.normal(size=(2, 3 * block[0] * block[1], counts[0] * counts[1])).astype(np.float32)
    arrays = [columns, np.array(image), np.array(block)]
    agrees_with_onnxruntime("Col2Im", arrays, 18, known=[1, 2], **attributes)


OVERLAP = [np.array([3, 3]), np.array([2, 2])]


def overlapped(columns, start=0):
    """The sums of 2x2 blocks over a 3x3 image by Python's own addition; ``columns`` is [1, 4, 4]."""
    image = np.full((3, 3), start, object)
    for (row, column), block in np.ndenumerate(np.arange(4).reshape(2, 2)):
        for (down, right), element in np.ndenumerate(np.arange(4).reshape(2, 2)):
            image[row + down, column + right] += columns[0, element, block].item()
    return image[None, None]


@pytest.mark.parametrize(
    "element", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "complex64", "complex128"]
)
def test_blocks_of_other_types_are_summed(element):
    x = RANDOM.integers(0, 30, (1, 4, 4)).astype(element) * np.array(1 + 2j if "complex" in element else 1, element)
    (got,) = run_node("Col2Im", [x, *OVERLAP], 18, known=[1, 2])
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, overlapped(x).astype(element))


def test_a_sum_of_booleans_is_true_where_one_is():
    x = np.zeros((1, 4, 4), bool)
    x[0, 0, 3] = x[0, 3, 3] = True  # the first of the four elements that meet in the middle, and a corner
    (got,) = run_node("Col2Im", [x, *OVERLAP], 18, known=[1, 2])
    assert got.dtype == np.bool_
    np.testing.assert_array_equal(got, overlapped(x) > 0)


def test_infinities_stay_where_they_are_added():
    x = np.ones((1, 4, 4), np.float32)
    x[0, 0, 0], x[0, 3, 3], x[0, 3, 0], x[0, 1, 1] = np.inf, np.nan, -np.inf, -np.inf
    (got,) = run_node("Col2Im", [x, *OVERLAP], 18, known=[1, 2])
    np.testing.assert_array_equal(got[0, 0], [[np.inf, 2, -np.inf], [2, -np.inf, 2], [1, 2, np.nan]])


def test_sums_of_float16_are_rounded_once():
    x = np.full((1, 4, 4), 2.0**-11, np.float16)
    x[0, 0, 3] = 1  # the first of the four elements that meet in the middle; each other alone would be rounded away
    (got,) = run_node("Col2Im", [x, *OVERLAP], 18, known=[1, 2])
    assert got[0, 0, 1, 1] == np.float16(1 + 3 * 2.0**-11)
    assert got[0, 0, 1, 1] > 1


def test_sums_of_strings_are_refused():
    x = np.full((1, 4, 4), "a", object)
    with pytest.raises(UnsupportedOperator, match="strings have no sum"):
        run_node("Col2Im", [x, *OVERLAP], 18, known=[1, 2])


def test_an_image_of_blocks_keeps_a_symbolic_batch():
    model = node_model("Col2Im", [np.ones((2, 8, 4), np.float32), *OVERLAP], 18)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    graph = import_model(model, known={"x1": OVERLAP[0], "x2": OVERLAP[1]})
    assert graph.outputs[0].tensor.dims == ("N", 2, 3, 3)
    (got,) = interpret(graph, [np.ones((3, 8, 4), np.float32), *OVERLAP])
    np.testing.assert_array_equal(got, np.tile(np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]), (3, 2, 1, 1)))


def test_blocks_that_do_not_fit_are_refused():
    with pytest.raises(InvalidModel, match="do not fit"):
        run_node("Col2Im", [np.zeros((1, 7, 4), np.float32), np.array([5, 5]), np.array([2, 2])], 18, known=[1, 2])


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_cache_is_written_from_an_index_on(mode):
    cache, update = np.zeros((2, 3, 4, 2), np.float32), RANDOM.normal(size=(2, 3, 2, 2)).astype(np.float32)
    first = np.array([1, 2 if mode == "linear" else 3])
    (got,) = run_node("TensorScatter", [cache, update, first], 24, mode=mode)
    for batch, start in enumerate(first):
        for step in range(2):
            np.testing.assert_array_equal(got[batch, :, (start + step) % 4], update[batch, :, step])
    assert np.count_nonzero(got) == update.size
    np.testing.assert_array_equal(run_node("TensorScatter", [cache, update], 24)[0][:, :, :2], update)
