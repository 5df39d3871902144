import numpy as np

from conformance.comparison import Evidence, Verdict, compare
from conformance.tolerance_names import parse_tolerance

EXACT = np.array([1000.0, 1.0, 1e-3])


def verdict(found, baseline, exact=EXACT):
    evidence = Evidence(baseline=[np.asarray(baseline, np.float32)], exact=[exact])
    return compare([np.asarray(found, np.float32)], [exact], parse_tolerance("measured_ulp"), evidence).verdict


def test_each_element_is_held_to_its_own_last_place():
    near = EXACT.astype(np.float32)
    assert verdict(near * (1 + 2e-7), near) is Verdict.WITHIN
    # Far less than the last place of the greatest element, far more than that of its own.
    off = near.copy()
    off[2] += 1e-6
    assert verdict(off, near) is Verdict.DIFFERENT


def test_the_error_of_the_other_implementation_widens_the_bound():
    near = EXACT.astype(np.float32)
    baseline = near.copy()
    baseline[1] += 10 * 2.0**-23
    off = near.copy()
    off[2] *= 1 + 30 * 2.0**-23
    assert verdict(off, near) is not Verdict.WITHIN
    assert verdict(off, baseline) is Verdict.WITHIN


def test_near_a_zero_of_the_function_the_whole_output_is_the_measure():
    exact = np.array([1000.0, 1e-9])
    baseline = np.array([1000.0, 1e-4], np.float32)
    assert verdict(np.array([1000.0, 2e-4]), baseline, exact) is Verdict.WITHIN
    assert verdict(np.array([1000.0, 1.0]), baseline, exact) is Verdict.DIFFERENT
