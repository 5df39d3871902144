"""Measured times beside simulated ones; the statistics against scipy and numpy's own least squares."""

import io

import numpy as np
import pytest
from rich.console import Console

from reports.errors import ReportError
from reports.measured import compare_measured, measured_text, read_measured
from reports.performance_test import example, operator


def file(tmp_path, text):
    path = tmp_path / "times.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("heading", ["", "operator,microseconds\n", "\ufeffoperator,us\n"])
def test_times_of_a_name_add_up_and_a_heading_is_none(tmp_path, heading):
    assert read_measured(file(tmp_path, f'{heading}conv, 1.5\n\n"a,b",2\nconv,0.5\n')) == {"conv": 2.0, "a,b": 2.0}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no time"),
        ("a,b\n", "holds no time"),
        ("a,1\nb,x\n", ":2: found 'b,x', expected an operator and its microseconds"),
        ("a,1,2\n", ":1: found 'a,1,2'"),
        ("a,-1\n", ":1: found"),
        ("a,nan\n", ":1: found"),
        ("a,1\nb,inf\n", ":2: found"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, text, said):
    with pytest.raises(ReportError, match=said):
        read_measured(file(tmp_path, text))


def test_a_kernel_of_several_nodes_is_compared_with_the_sum_of_their_times():
    found = compare_measured(example(), {"conv_node": 0.3, "add_node": 0.1, "=matmul": 0.6, "elsewhere": 1.0})
    first, second = found["operators"]
    # 500 and 300 cycles of a nanosecond each.
    assert (first["names"], first["simulated_us"], first["measured_us"]) == (["conv_node", "add_node"], 0.5, 0.4)
    assert first["error"] == pytest.approx(0.25)
    assert second["error"] == pytest.approx(-0.5)
    assert found["total_error"] == pytest.approx(-0.2)
    assert (found["without_time"], found["without_operator"]) == ([2], ["elsewhere"])


def test_nodes_are_found_with_their_type_or_without():
    run = example()
    run["operators"] = [operator(0, ["conv"], 10, nodes=["block (1)/c1 (Conv)"]), operator(1, ["add"], 20)]
    for name in ("block (1)/c1", "block (1)/c1 (Conv)", "0", "conv"):
        assert [row["order"] for row in compare_measured(run, {name: 1.0})["operators"]] == [0]


def test_the_scale_is_that_of_least_squares_and_the_correlation_that_of_ranks():
    run, random = example(), np.random.default_rng(0)
    cycles = random.integers(100, 10_000, 40)
    run["operators"] = [operator(place, ["mul"], int(count), nodes=[f"n{place}"]) for place, count in enumerate(cycles)]
    times = cycles * 1e-3 * 3.0 * random.uniform(0.7, 1.4, 40)
    found = compare_measured(run, {f"n{place}": float(time) for place, time in enumerate(times)})
    ratios = (cycles * 1e-3 / times)[:, None]
    assert found["scale"] == pytest.approx(np.linalg.lstsq(ratios, np.ones(40), rcond=None)[0][0])
    ranks = [np.argsort(np.argsort(values)) for values in (cycles, times)]
    assert found["rank_correlation"] == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert found["mean_absolute_error_after_scale"] < 0.25 < found["mean_absolute_error"]


def test_a_single_time_has_no_scale_and_no_rank():
    found = compare_measured(example(), {"conv_node": 1.0})
    assert found["scale"] is None
    assert found["rank_correlation"] is None


def test_names_that_are_all_unknown_are_refused_with_some_that_are_known():
    with pytest.raises(ReportError, match=r"none of the 1 measured operators .* whose nodes are conv_node"):
        compare_measured(example(), {"x": 1.0})


def test_the_text_says_each_figure():
    console = Console(file=io.StringIO(), width=160)
    console.print(measured_text(compare_measured(example(), {"conv_node": 0.4, "=matmul": 0.6, "elsewhere": 1.0})))
    text = console.file.getvalue()
    for part in ("+25.0 %", "-50.0 %", "best scale", "rank correlation -1.0000", "times without a partner: elsewhere"):
        assert part in text
