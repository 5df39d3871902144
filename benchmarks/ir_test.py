import pytest

from benchmarks.ir import Subject, measure, our_subject, xdsl_subject


@pytest.mark.parametrize("make", [our_subject, xdsl_subject])
def test_each_step_does_its_work_on_both(make):
    if make is xdsl_subject:
        pytest.importorskip("xdsl")
    assert set(measure(make(20), 20)) == {"build", "verify", "print", "parse", "rewrite"}


def test_a_step_that_does_nothing_is_no_figure():
    honest = our_subject(20)
    lazy = Subject(
        honest.build, honest.verify, honest.text, honest.parse, rewrite=lambda graph: graph, count=honest.count
    )
    with pytest.raises(AssertionError):
        measure(lazy, 20)
