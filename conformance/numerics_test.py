import ml_dtypes
import numpy as np
import pytest

from conformance.numerics import Kind, format_of, kind_of, ulp, widen


@pytest.mark.parametrize(
    ("dtype", "bits", "smallest", "largest", "infinity"),
    [
        (np.float64, 52, 2.0**-1022, 1.7976931348623157e308, True),
        (np.float32, 23, 2.0**-126, 3.4028234663852886e38, True),
        (np.float16, 10, 2.0**-14, 65504.0, True),
        (ml_dtypes.bfloat16, 7, 2.0**-126, 3.3895313892515355e38, True),
        (ml_dtypes.float8_e4m3fn, 3, 2.0**-6, 448.0, False),
        (ml_dtypes.float8_e5m2, 2, 2.0**-14, 57344.0, True),
        (ml_dtypes.float4_e2m1fn, 1, 1.0, 6.0, False),
    ],
)
def test_formats_are_those_of_their_specifications(dtype, bits, smallest, largest, infinity):
    form = format_of(np.dtype(dtype))
    assert (form.mantissa_bits, form.smallest_normal, form.largest) == (bits, smallest, largest)
    assert form.has_infinity == infinity


def test_kinds_of_types_that_numpy_calls_void():
    assert kind_of(np.dtype(ml_dtypes.bfloat16)) is Kind.FLOAT
    assert kind_of(np.dtype(ml_dtypes.int4)) is Kind.INTEGER
    assert kind_of(np.dtype(object)) is Kind.TEXT
    assert kind_of(np.dtype(np.complex64)) is Kind.COMPLEX
    with pytest.raises(TypeError, match="datetime64"):
        kind_of(np.dtype("datetime64[s]"))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("value", [1.0, 1.5, 0.75, 3.0e-3, 6.1e-5, 1024.0, 60000.0])
def test_ulp_is_the_gap_to_the_next_number(dtype, value):
    below = dtype(value)
    gap = float(np.nextafter(below, dtype(np.inf))) - float(below)
    assert ulp(float(below), format_of(np.dtype(dtype))) == gap


def test_ulp_just_below_a_power_of_two_is_that_of_the_lower_binade():
    just_below = np.nextafter(2.0, 0.0)
    assert ulp(just_below, format_of(np.dtype(np.float32))) == 2.0**-23


def test_ulp_of_zero_and_of_denormals_is_the_smallest_step():
    form = format_of(np.dtype(np.float16))
    assert ulp(np.array([0.0, 2.0**-24]), form).tolist() == [2.0**-24, 2.0**-24]


def test_complex_values_widen_to_pairs():
    assert widen(np.array([1 + 2j], np.complex64)).tolist() == [[1.0, 2.0]]
