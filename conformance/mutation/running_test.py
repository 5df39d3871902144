import os
import signal
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from conformance.mutation.children import Died, Limits, run_children
from conformance.mutation.damages import DAMAGES, scaled, shortened
from conformance.mutation.edits import ROOT, Edit, Fault, textual_edit
from conformance.mutation.importing import can_patch, install, patch
from conformance.mutation.pool import Pool, PoolCase, spread
from conformance.mutation.report import Status, rate, record_of, summary
from conformance.mutation.selection import select_cases
from conformance.mutation.trial import unit_tests

_NONE = Limits()
_PATH = "compiler/simulator/units.py"


def _fault(path=_PATH, lines=(1,), scopes=()):
    end = (ROOT / _PATH).stat().st_size
    return Fault("some", path, (Edit(end, end, "MADE_WRONG = True\n"),), lines, "constant", scopes)


def _in_children(tmp_path, *works, limits=_NONE):
    return dict(run_children(list(enumerate(works)), 2, limits, tmp_path / "log"))


def _served():
    import sys

    for name in [name for name in sys.modules if name.startswith("compiler")]:
        del sys.modules[name]
    install(_fault())
    from compiler.simulator import units

    return units.MADE_WRONG, Path(units.__file__)


def test_a_child_imports_the_faulty_source_and_no_file_changes(tmp_path):
    before = (ROOT / _PATH).read_bytes()
    assert _in_children(tmp_path, _served) == {0: (True, ROOT / _PATH)}
    assert (ROOT / _PATH).read_bytes() == before


def _install_too_late():
    import compiler.simulator.units  # noqa: F401

    install(_fault())


def test_a_fault_in_a_module_that_is_loaded_already_is_refused(tmp_path):
    (died,) = _in_children(tmp_path, _install_too_late).values()
    assert isinstance(died, Died)
    assert "is imported already" in (tmp_path / "log").read_text()


def _patched():
    from compiler.simulator.matmul import merge

    before = merge((2, 3), (12, 4))
    edit, line = textual_edit(
        "compiler/simulator/matmul.py", "if outer != inner * extent:", "if outer == inner * extent:", "x"
    )
    fault = Fault("x", "compiler/simulator/matmul.py", (edit,), (line,), "comparison")
    assert can_patch(fault)
    patch(fault)
    return before, merge((2, 3), (12, 4))


def test_a_function_that_lives_is_patched_for_all_who_have_it(tmp_path):
    assert _in_children(tmp_path, _patched) == {0: (4, None)}


def _patched_closure():
    import compiler.frontends.onnx.converters.reduce as module

    convert = module._arg(None)
    edit, line = textual_edit(module.__name__.replace(".", "/") + ".py", 'axis=site.attribute("axis"),', "", "x")
    patch(Fault("x", "compiler/frontends/onnx/converters/reduce.py", (edit,), (line,), "keyword"))
    return "axis" in [name for part in convert.__code__.co_consts if isinstance(part, tuple) for name in part]


def test_a_function_that_a_patched_one_has_made_before_is_patched_too(tmp_path):
    assert _in_children(tmp_path, _patched_closure) == {0: False}


def _in_a_table():
    import compiler.simulator.combine  # noqa: F401

    edit, line = textual_edit(
        "compiler/simulator/combine.py", "Combiner.MAX: np.maximum", "Combiner.MAX: np.minimum", "x"
    )
    return can_patch(Fault("x", "compiler/simulator/combine.py", (edit,), (line,), "constant"))


def test_a_table_made_at_import_cannot_be_patched(tmp_path):
    assert _in_children(tmp_path, _in_a_table) == {0: False}


def _spin():
    while True:
        pass


def test_children_that_die_or_spin_are_results_too(tmp_path):
    found = _in_children(
        tmp_path, lambda: 7, lambda: os.kill(os.getpid(), signal.SIGKILL), _spin, limits=Limits(cpu_seconds=1)
    )
    assert found[0] == 7
    assert found[1] == Died("the process was ended by SIGKILL")
    assert found[2] == Died("out of processor time")


@pytest.mark.parametrize(("dtype", "bits"), [(np.float32, 23), (np.float16, 10), (ml_dtypes.bfloat16, 7)])
def test_scaling_by_eight_units_and_shortening_by_three_bits(dtype, bits):
    one = np.ones(1, dtype)
    assert float(scaled(one)[0]) == 1 + 2.0 ** (3 - bits)
    assert float(shortened((one.astype(float) + 4 * 2.0**-bits).astype(dtype))[0]) == 1  # a tie goes to even
    assert float(shortened((one.astype(float) + 5 * 2.0**-bits).astype(dtype))[0]) == 1 + 2.0 ** (3 - bits)
    assert np.isnan(shortened(np.array([np.nan], dtype)).astype(float)[0])


def test_damages_leave_the_given_outputs_as_they_were():
    outputs = [np.array([1.5, np.nan, np.inf, 0.0], np.float32), np.array([3], np.int8), np.array([True])]
    copies = [value.copy() for value in outputs]
    for damage in DAMAGES.values():
        damage(outputs)
    for value, copy in zip(outputs, copies, strict=True):
        np.testing.assert_array_equal(value, copy)


def test_spread_takes_each_key_once_before_any_again():
    keys = [("a",)] * 5 + [("b",), ("c",)]
    order = spread(keys, "seed")
    assert sorted(order) == list(range(7))
    assert {keys[place] for place in order[:3]} == {("a",), ("b",), ("c",)}


def _case(name, operator="Add"):
    return PoolCase(
        name,
        "reference-npu",
        operator,
        "float32",
        "random",
        14,
        "static",
        b"",
        [],
        "exact",
        None,
        False,
        None,
        (),
        {},
        "passed",
    )


def _pool():
    pool = Pool([_case("x"), _case("y"), _case("z", "Mul")])
    pool.lines[_PATH] = {10: [0], 20: [1, 2]}
    return pool


def test_cases_that_run_the_line_are_taken_else_those_around_it_else_all():
    pool = _pool()
    assert select_cases(_fault(lines=(10,)), pool) == [0]
    assert sorted(select_cases(_fault(lines=(19,), scopes=((18, 22),)), pool)) == [1, 2]
    assert sorted(select_cases(_fault(lines=(30,), scopes=((29, 31),)), pool)) == [0, 1, 2]
    assert sorted(select_cases(_fault("compiler/other.py"), pool)) == [0, 1, 2]


def test_unit_tests_are_those_that_import_the_module():
    assert [Path(test).name for test in unit_tests("compiler/ops/windows.py")][:1]
    assert "tolerance_names" not in unit_tests("conformance/vote.py")[0]
    assert Path(unit_tests("conformance/vote.py")[0]).name == "vote_test.py"


def _record(status):
    found = {
        "seen_by": "",
        "reason": "",
        "cases_tried": 0,
        "reached": True,
        "figures_changed": False,
        "cpu_seconds": 0.0,
    }
    return record_of(_fault(), "compiler/simulator", status, **found)


def test_equivalent_faults_do_not_count_in_a_rate():
    records = [_record(Status.SUITE), _record(Status.UNIT_TESTS), _record(Status.SURVIVED), _record(Status.EQUIVALENT)]
    assert rate(records, [Status.SUITE]) == (1, 3)
    assert summary(records)["generated"]["rate"] == pytest.approx(2 / 3, abs=1e-4)
