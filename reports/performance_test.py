"""The report of a run: same bytes each time, tables that add up, and what changed between two runs."""

import copy
import csv
import io
import json
from html.parser import HTMLParser

import pytest
from rich.console import Console

from reports.errors import ReportError, UnknownSchema
from reports.performance import is_performance, read_performance, write_performance
from reports.performance_diff import compare_performance, performance_difference_text


def operator(order, names, cycles, **other):
    return {
        "order": order, "operators": names, "nodes": [f"{name}_node" for name in names], "device": "accelerator",
        "reason": "", "runs": 1, "start_cycle": 100 * order, "span_cycles": cycles + 10, "cycles": cycles,
        "share": cycles / 1000, "bound": "matrix", "macs": 4096, "operations": 8192,
        "utilization": {"macs": 0.5, "matrix": 0.75, "vector": 0.0, "dma_in": 0.25, "dma_out": 0.1},
        "read_bytes": 512, "written_bytes": 128, "traffic_bytes": 640, "compulsory_bytes": 600, "intensity": 12.8,
        "energy_pj": 2e6, "energy_by_component": {"matrix": 1e6, "dram": 1e6},
        **other,
    }  # fmt: skip


def example():
    host = operator(
        2, ["nonzero"], 200, device="host", bound="host", reason="a size depends on <data>", utilization={},
        energy_by_component={}, energy_pj=0.0, operations=0, macs=0, intensity=None, nodes=["</script> & co"],
    )  # fmt: skip
    operators = [operator(0, ["conv", "add"], 500), operator(1, ["=matmul"], 300, bound="memory"), host]
    idle = {"dma": 1, "dependency": 2, "drained": 3, "host": 200}
    return {
        "schema": "opatlas.performance", "version": 1, "model": "net.onnx", "placement": "mixed",
        "target": {
            "name": "npu", "description": "an example", "frequency_hz": 1e9, "array": "32x32", "dataflows": ["os"],
            "macs_per_cycle": {"float32 x float32": 1024, "int8 x int8": 4096}, "vector_lanes": 64,
            "dram_bytes_per_cycle": 32.0, "sram_bytes": 4096,
        },
        "totals": {
            "cycles": 1000, "accelerator_cycles": 800, "host_cycles": 200, "seconds": 1e-6, "macs": 8192,
            "read_bytes": 1024, "written_bytes": 256, "traffic_bytes": 1280, "compulsory_bytes": 1200,
            "bus_bytes": 1600,
            "peak_sram_bytes": 2048, "energy_pj": 4e6, "energy_by_component": {"matrix": 2e6, "dram": 2e6},
            "average_watts": 4.0, "peak_watts": 9.0, "energy_delay_joule_seconds": 4e-12, "operators_before": 4,
            "operators_after": 3,
        },
        "utilization": {"dma_in": 0.2, "dma_out": 0.1, "matrix": 0.6, "vector": 0.0, "macs": 0.4},
        "stalls": dict.fromkeys(("dma_in", "dma_out", "matrix", "vector"), idle),
        "operators": operators,
        "occupancy": [
            {"program": "p0", "memory": memory, "capacity_bytes": 4096, "planned_bytes": 2048, "peak_live_bytes": 1800,
             "times": [0, 10, 700], "bytes": [1800, 900, 0]} for memory in ("sram", "dram")
        ],
        "plan": [
            {"node": node, "operators": row["operators"], "supported": [row["device"], "host"],
             "preferred": row["device"], "reason": row["reason"], "kernel": row["order"],
             "nodes_of_kernel": len(row["nodes"]), "cost_share": row["share"]}
            for row in operators for node in row["nodes"]
        ],
        "cost_analysis": {
            "flops": 16384, "transcendentals": 0, "bytes_accessed": 4000, "argument_bytes": 512, "constant_bytes": 256,
            "output_bytes": 128, "temporary_bytes": 0, "peak_bytes": 896, "operations": 3,
            "operations_of_unknown_cost": 1,
            "by_operator": {"conv": {"count": 1, "flops": 8192, "transcendentals": 0, "bytes_accessed": 2000}},
        },
    }  # fmt: skip


class Tables(HTMLParser):
    """Texts of the cells of each table, by the table's id."""

    def __init__(self):
        super().__init__()
        self.rows, self._table, self._cell = {}, None, False

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self._table = self.rows.setdefault(dict(attrs)["id"], [])
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        elif tag in {"td", "th"}:
            self._cell = True
            self._table[-1].append("")

    def handle_endtag(self, tag):
        if tag in {"td", "th"}:
            self._cell = False

    def handle_data(self, data):
        if self._cell:
            self._table[-1][-1] += data


def tables(page):
    parser = Tables()
    # Plotly's source is no part of what is looked at.
    parser.feed(page.read_text().split('<script type="application/json"')[0])
    return parser.rows


def test_two_runs_write_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        write_performance(example(), tmp_path / name, with_trace=True)
    for file in ("index.html", "operators.csv", "performance.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_the_page_has_every_operator_in_order_and_the_costliest_first(tmp_path):
    found = tables(write_performance(example(), tmp_path))
    assert [row[:2] for row in found["operators"][1:]] == [["0", "conv, add"], ["1", "=matmul"], ["2", "nonzero"]]
    assert [(row[0], row[3], row[4]) for row in found["top"][1:]] == [
        ("conv, add", "50.0 %", "50.0 %"), ("=matmul", "30.0 %", "80.0 %"), ("nonzero", "20.0 %", "100.0 %"),
    ]  # fmt: skip
    assert found["operators"][3][-1] == "a size depends on <data>"
    assert found["plan"][-1][:3] == ["</script> & co", "host, host", "host"]


def test_names_from_a_model_cannot_leave_their_place(tmp_path):
    text = write_performance(example(), tmp_path).read_text()
    data = text.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert set(json.loads(data)["plots"]) == {"roofline", "occupancy"}
    assert "</script> & co" not in text.split('<script type="application/json"')[0]
    lines = list(csv.DictReader(io.StringIO((tmp_path / "operators.csv").read_text())))
    assert [line["operators"] for line in lines] == ["conv+add", "'=matmul", "nonzero"]
    assert sum(int(line["cycles"]) for line in lines) == 1000


def test_plotly_takes_the_plots(tmp_path):
    from plotly.graph_objects import Figure

    text = write_performance(example(), tmp_path).read_text()
    plots = json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])["plots"]
    for plot in plots.values():
        Figure(plot)  # refuses an unknown key or a wrong value
    roofs = {entry["name"]: entry["y"][-1] for entry in plots["roofline"]["data"] if entry["mode"] == "lines"}
    assert roofs == {"vector unit": 64, "float32 x float32": 2048, "int8 x int8": 8192}


def test_what_was_written_reads_back(tmp_path):
    write_performance(example(), tmp_path)
    assert read_performance(tmp_path) == read_performance(tmp_path / "performance.json") == example()
    assert is_performance(tmp_path)
    assert is_performance(tmp_path / "performance.json")
    assert not is_performance(tmp_path / "operators.csv")
    assert not is_performance(tmp_path / "missing")


@pytest.mark.parametrize(
    ("text", "refusal", "said"),
    [
        ("{", ReportError, "no readable performance"),
        ("[]", ReportError, "found no data of schema opatlas.performance"),
        ('{"schema": "opatlas.performance", "version": 99}', UnknownSchema, "version 99 of .*, expected 1"),
    ],
)
def test_what_is_no_performance_is_refused(tmp_path, text, refusal, said):
    (tmp_path / "performance.json").write_text(text)
    with pytest.raises(refusal, match=said):
        read_performance(tmp_path)


def shown(difference):
    console = Console(file=io.StringIO(), width=200)
    console.print(performance_difference_text(difference))
    return console.file.getvalue()


def test_a_run_does_not_differ_from_itself():
    difference = compare_performance(example(), example())
    assert not difference["is_changed"]
    assert difference["same"] == 3
    assert "operators that did not change: 3" in shown(difference)


def test_operators_are_paired_by_their_nodes_and_the_largest_change_stands_first():
    new = copy.deepcopy(example())
    new["operators"][1]["cycles"] = 100
    new["operators"][0]["operators"] = ["conv"]
    new["operators"][0]["cycles"] = 510
    new["operators"][2]["nodes"] = ["another"]
    new["totals"]["cycles"] = 810
    difference = compare_performance(example(), new)
    assert [(row["operators"], row["state"], row["cycles"]["change"]) for row in difference["operators"]] == [
        (["=matmul"], "both", -200), (["nonzero"], "gone", -200), (["nonzero"], "new", 200), (["conv"], "both", 10),
    ]  # fmt: skip
    assert difference["totals"]["cycles"] == {"old": 1000, "new": 810, "change": -190, "relative": -0.19}
    assert "-19.00 %" in shown(difference)


def test_equal_operators_are_told_apart_by_their_place():
    old, new = example(), example()
    for run in (old, new):
        run["operators"] = [operator(place, ["mul"], 10 + place, nodes=[]) for place in range(3)]
    new["operators"][1]["cycles"] = 99
    rows = compare_performance(old, new)["operators"]
    assert [(row["state"], row["cycles"]["old"], row["cycles"]["new"]) for row in rows] == [("both", 11, 99)]
