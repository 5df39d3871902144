import numpy as np
import pytest

from conformance.backends import load_backend
from conformance.kill_rate import MUTANTS, main, measure
from conformance.suites import make_suite


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_changes_its_data_and_leaves_the_original_alone(name):
    arrays = [np.array([[1.5, np.nan, -2.0]], np.float32), np.array([[1, 2], [3, 4]], np.int8)]
    before = [array.copy() for array in arrays]
    damaged = [MUTANTS[name](array) for array in arrays]
    assert any(array is not None for array in damaged)
    for array, old, new in zip(arrays, before, damaged, strict=True):
        np.testing.assert_array_equal(array, old)
        assert new is None or new.shape != old.shape or new.tobytes() != old.tobytes()


def test_a_mutant_leaves_data_alone_that_it_would_not_change():
    assert MUTANTS["NaN becomes 0"](np.ones(3, np.float32)) is None
    assert MUTANTS["scaled by 8 ulp"](np.zeros(3, np.float32)) is None
    assert MUTANTS["integer off by one"](np.ones(3, np.float32)) is None
    assert MUTANTS["one element wrong"](np.ones(3, np.float32)) is None


def test_elementwise_classes_see_every_mutant():
    suite = make_suite("operators")
    infos = [info for info in suite.cases() if info.operator in {"Add", "Neg", "Transpose"}][::4]
    tallies = measure(suite, infos, load_backend("opatlas", "reference-npu"))
    assert {"scaled by 8 ulp", "integer off by one", "flattened", "negated"} <= set(tallies)
    for name in ("scaled by 8 ulp", "integer off by one", "flattened", "NaN becomes 0"):
        if name in tallies:
            assert tallies[name].killed == tallies[name].tried, (name, tallies[name].survivors)


def test_the_command_prints_a_line_a_mutant(capsys):
    assert main(["--op", "Neg", "--every", "8"]) == 0
    assert "flattened: " in capsys.readouterr().out
