"""The page of a sweep: its front, its table, and the same figures as CSV."""

import csv
import io
import json
import shutil

import pytest
from rich.console import Console

from reports.browser_test import browser, page, texts  # noqa: F401 - fixtures
from reports.performance_test import tables
from reports.sweep import FIGURES, sweep_text, write_sweep


def example():
    def point(rows, seconds, energy, on_front):
        figures = dict.fromkeys(FIGURES, 1) | {"seconds": seconds, "energy_pj": energy, "cycles": int(seconds * 1e9)}
        return {"point": {"rows": rows, "dtype": "float16"}, **figures, "on_front": on_front}

    refused = {"point": {"rows": "4096", "dtype": "float16"}, "refused": "<no> room", "on_front": False}
    points = [point("8", 4e-6, 1e6, True), point("16", 2e-6, 2e6, True), point("12", 5e-6, 3e6, False), refused]
    return {
        "schema": "opatlas.sweep", "version": 1, "model": "net.onnx", "target": "npu", "study": "x",
        "axes": {"rows": ["8", "16", "12", "4096"], "dtype": ["float16"]}, "objectives": ["seconds", "energy_pj"],
        "points": points,
    }  # fmt: skip


def plots_of(path):
    return json.loads(path.read_text().split('<script type="application/json" id="data">')[1].split("</script>")[0])[
        "plots"
    ]


def test_the_front_is_joined_in_order_and_the_others_stand_apart(tmp_path):
    from plotly.graph_objects import Figure

    plot = plots_of(write_sweep(example(), tmp_path))["front"]
    Figure(plot)
    others, best = plot["data"]
    assert (best["x"], best["y"]) == ([2e-6, 4e-6], [2e6, 1e6])
    assert others["text"] == ["rows=12, dtype=float16"]


def test_the_table_and_the_csv_hold_every_point(tmp_path):
    found = tables(write_sweep(example(), tmp_path))["points"]
    assert [row[0] for row in found[1:]] == ["8", "16", "12", "4096"]
    assert found[4][-1] == "<no> room"
    lines = list(csv.DictReader(io.StringIO((tmp_path / "sweep.csv").read_text())))
    assert [line["on_front"] for line in lines] == ["1", "1", "0", "0"]
    assert lines[3]["cycles"] == ""
    assert json.loads((tmp_path / "sweep.json").read_text()) == example()


def test_the_text_has_the_front_and_what_is_refused():
    console = Console(file=io.StringIO(), width=160)
    console.print(sweep_text(example()))
    text = console.file.getvalue()
    assert "4 points, 2 on the front of seconds and energy_pj" in text
    assert text.index("2e-06") < text.index("4e-06")
    assert "1 points are refused, such as rows=4096, dtype=float16: <no> room" in text


@pytest.mark.browser
@pytest.mark.skipif(not (shutil.which("chromium") and shutil.which("chromedriver")), reason="chromium is not installed")
def test_the_front_is_drawn_in_a_browser(tmp_path, page):  # noqa: F811
    found = page(write_sweep(example(), tmp_path))
    assert found.execute_script("return document.querySelectorAll('#front .points path').length") == 3
    found.execute_script("document.querySelector('#points thead th:nth-child(5) button').click()")
    assert texts(found, "#points tbody td:nth-child(1)") == ["12", "8", "16", "4096"]
