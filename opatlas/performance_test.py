"""The performance of a run, from the command to its files: what adds up, what repeats, and where it ran."""

import json
import math

import onnx
import onnx.parser
import pytest

import opatlas
from compiler import api
from opatlas.performance import performance

MODEL = """
<ir_version: 9, opset_import: ["": 20]>
net (float[batch, 64] x) => (float[batch, 32] y, double[batch, 32] wide)
<float[64, 32] w = {WEIGHTS}> {
    [product] a = MatMul (x, w)
    [curve] b = Gelu (a)
    [soft] y = Softmax (b)
    [widened] c = Cast <to = 11> (b)
    [where] wide = Sin (c)
}
""".replace("WEIGHTS", ", ".join(["0.5"] * 64 * 32))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "net.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return path


@pytest.fixture
def run(capsys):
    def start(*arguments):
        with pytest.raises(SystemExit) as left:
            opatlas.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return left.value.code or 0, captured.out, captured.err

    return start


@pytest.fixture(scope="module")
def data(model):
    return performance("net.onnx", api.compile(model).estimate({"batch": 4}))


def test_operators_add_up_to_the_totals(data):
    rows, totals = data["operators"], data["totals"]
    for name in ("cycles", "macs"):
        assert sum(row[name] for row in rows) == totals[name]
    on_accelerator = [row for row in rows if row["device"] == "accelerator"]
    assert sum(row["traffic_bytes"] for row in on_accelerator) == totals["traffic_bytes"]
    assert math.fsum(row["energy_pj"] for row in rows) == pytest.approx(totals["energy_pj"], rel=1e-9)
    assert math.fsum(totals["energy_by_component"].values()) == pytest.approx(totals["energy_pj"], rel=1e-9)
    assert math.fsum(row["share"] for row in rows) == pytest.approx(1)
    assert totals["macs"] == 4 * 64 * 32


def test_utilization_is_a_share(data):
    shares = [share for row in data["operators"] for share in row["utilization"].values()]
    assert all(0 <= share <= 1 for share in shares)
    assert any(shares)


def test_power_is_energy_over_time_and_never_above_its_peak(data):
    totals = data["totals"]
    joules = totals["energy_pj"] * 1e-12
    assert totals["average_watts"] == pytest.approx(joules / totals["seconds"])
    assert totals["energy_delay_joule_seconds"] == pytest.approx(joules * totals["seconds"])
    assert totals["peak_watts"] >= totals["average_watts"]


def test_the_plan_says_where_each_node_can_run_and_does_and_why_not(data):
    plan = {row["node"]: row for row in data["plan"]}
    assert plan["product (MatMul)"]["supported"] == ["accelerator", "host"]
    assert plan["product (MatMul)"]["preferred"] == "accelerator"
    assert plan["where (Sin)"]["supported"] == ["host"]
    assert plan["where (Sin)"]["reason"] == "float64 is not a type of reference-npu"


def test_operators_stand_in_the_order_in_which_they_ran(data):
    assert [row["order"] for row in data["operators"]] == list(range(len(data["operators"])))
    assert data["operators"][-1]["device"] == "host"
    starts = [row["start_cycle"] for row in data["operators"]]
    assert starts == sorted(starts)


def test_the_cost_analysis_counts_the_product(data):
    found = data["cost_analysis"]
    assert found["by_operator"]["matmul"]["flops"] == 2 * 4 * 64 * 32
    assert found["argument_bytes"] == 4 * 64 * 4
    assert found["transcendentals"] > 0


def test_live_bytes_stay_within_the_plan(data):
    for entry in data["occupancy"]:
        assert max(entry["bytes"]) == entry["peak_live_bytes"] <= entry["planned_bytes"] <= entry["capacity_bytes"]


def test_a_report_is_the_same_bytes_each_time_and_differs_from_another_target_s(run, model, tmp_path):
    one, two, other = tmp_path / "one", tmp_path / "two", tmp_path / "other"
    for folder, target in ((one, "reference-npu"), (two, "reference-npu"), (other, "systolic-16x16-os")):
        arguments = ("--timing-only", "--bind", "batch=4", "--target", target, "--report", folder)
        status, _, err = run("simulate", model, *arguments)
        assert status == 0
        assert str(folder / "index.html") in err.replace("\n", "")
    for file in one.iterdir():
        assert file.read_bytes() == (two / file.name).read_bytes()
    assert json.loads((one / "timeline.json").read_text())["traceEvents"]
    status, out, _ = run("diff", one, two)
    assert (status, "operators that did not change" in out) == (0, True)
    status, out, _ = run("diff", one, other, "--json")
    assert status == 1
    assert json.loads(out)["totals"]["cycles"]["change"] > 0
    assert run("diff", one, other, "--fail-on", "nothing")[0] == 0


def test_measured_times_are_compared(run, model, tmp_path):
    times = tmp_path / "times.csv"
    times.write_text("operator,us\nproduct,1.0\nsoft,2.0\n")
    status, out, _ = run("simulate", model, "--timing-only", "--bind", "batch=4", "--measured", times, "--json")
    assert status == 0
    found = json.loads(out)
    assert found["measured_us"] == 3.0
    assert {name for row in found["operators"] for name in row["names"]} == {"product", "soft"}
    times.write_text("product,fast\nsoft,1\nsoft,x\n")
    status, _, err = run("simulate", model, "--timing-only", "--bind", "batch=4", "--measured", times)
    assert status == 2
    assert "times.csv:3" in err
