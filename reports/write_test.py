"""Reports against stored ones. After a wanted change: `OPATLAS_UPDATE_GOLD=1 pytest reports/write_test.py`."""

import os
import re
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from reports.diff import compare
from reports.errors import ReportError
from reports.junit import write_junit
from reports.matrix import CellKey, known_cells
from reports.record import Errors, HostOperator, Outcome, Record
from reports.store import RecordWriter, write_records
from reports.terminal import difference_text, summary_text
from reports.write import write_reports

GOLD = Path(__file__).parent / "testdata"
COMMON = {
    "run": "run-1",
    "suite_hash": "5f3a",
    "versions": {"onnx": "1.23.2", "onnxruntime": "1.32.0"},
    "backend": "opatlas",
    "target": "reference-npu",
    "framework": "onnx",
    "suite": "operators",
}
CELLS = [
    CellKey("onnx", "ai.onnx", name, 14, kind) for name in ("Add", "Slice", "STFT") for kind in ("float32", "int8")
]


def example() -> list[Record]:
    """One record of each kind that the reports treat differently, with texts that need escaping."""
    return [
        Record(
            **COMMON,
            case_id="onnx/Add-14/float32/2x3/random",
            domain="ai.onnx",
            operator="Add",
            since_version=14,
            opset=14,
            dtype="float32",
            shapes=[[2, 3], [3]],
            data_class="random",
            input_mode="static",
            tolerance_class="ulp(0.5)",
            stage="compare",
            outcome="passed",
            placement="accelerator",
            errors=Errors(max_ulp=0.5, max_abs=2.4e-7, max_rel=1e-7, bias=0.0),
            oracles={"onnxruntime": "agrees", "reference": "agrees"},
            cycles=128,
            traffic_bytes=60,
            compulsory_bytes=60,
            energy_pj=9600.5,
            peak_sram_bytes=60,
            operators_before=1,
            operators_after=1,
            stage_ms={"import": 0.5, "lower": 1.25},
            cpu_ms=4.0,
            utilization={"vector": 0.125},
        ),
        Record(
            **COMMON,
            case_id="onnx/Add-14/int8/2x3/random",
            domain="ai.onnx",
            operator="Add",
            since_version=14,
            opset=14,
            dtype="int8",
            stage="compare",
            outcome="wrong_result",
            placement="mixed",
            reason="127 where -128 is expected, at [0, 1] </script><b>",
            errors=Errors(max_abs=float("inf")),
            host_operators=[HostOperator(operator="add", reason="no int8 & no uint8", location="node 'n<0>'")],
            cpu_ms=6.0,
            reproducer="reproducers/add int8.py",
            unexpected=True,
        ),
        Record(
            **COMMON,
            case_id="onnx/Slice-13/float32/ends=-1",
            domain="ai.onnx",
            operator="Slice",
            since_version=13,
            dtype="float32",
            stage="import",
            outcome="unsupported",
            diagnosis="UnsupportedOperator",
            reason="=ai.onnx.Slice-13: negative step",
            expected="unsupported",
            cpu_ms=1.0,
        ),
        Record(
            **COMMON,
            case_id="onnx/Slice-13/float32/ends=max",
            domain="ai.onnx",
            operator="Slice",
            since_version=13,
            dtype="float32",
            stage="compare",
            outcome="oracle_disagreement",
            oracles={"onnxruntime": "agrees", "reference": "differs"},
            ruling="ends beyond the size are clamped",
            cpu_ms=1.0,
        ),
        Record(
            **COMMON, case_id="weird \x07 name", operator="My/Op", domain="com.example", stage="lower", outcome="crash"
        ),
    ]


@pytest.fixture
def run(tmp_path):
    """Folder with the records of the example and a reproducer, as a session leaves them."""
    folder = tmp_path / "run"
    with RecordWriter.for_worker(folder, "gw0") as writer:
        for record in example():
            writer.write(record)
    (folder / "reproducers").mkdir()
    (folder / "reproducers" / "add int8.py").write_text("print('<b>' & 1)\n")
    return folder


def scrub(text: str) -> str:
    """Set aside what every page has alike: the styles and the script."""
    text = re.sub(r"<style>.*?</style>", "<style/>", text, flags=re.DOTALL)
    text = re.sub(r"<script>.*?</script>", "<script/>", text, flags=re.DOTALL)
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)


def check_gold(name: str, text: str):
    path = GOLD / name
    if os.environ.get("OPATLAS_UPDATE_GOLD"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["index.html", "operators/onnx.Add.html", "records.csv", "coverage.json", "junit.xml", "records.jsonl"]
)
def test_reports_are_those_on_record(run, tmp_path, name):
    write_reports(run, tmp_path / "out", CELLS)
    check_gold(name.replace("/", "."), scrub((tmp_path / "out" / name).read_text(encoding="utf-8")))


def plain(renderable) -> str:
    stream = StringIO()
    Console(file=stream, width=100, force_terminal=False, color_system=None).print(renderable)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def test_terminal_summary_is_plain_text_where_there_is_no_terminal(run, tmp_path):
    check_gold("summary.txt", plain(summary_text(write_reports(run, tmp_path / "out", CELLS))))


def test_terminal_difference_is_that_on_record():
    old = example()
    new = [record.model_copy(update={"run": "run-2"}) for record in example()]
    new[0] = new[0].model_copy(update={"outcome": Outcome.WRONG_RESULT, "reason": "3 ulp"})
    new[1] = new[1].model_copy(update={"outcome": Outcome.PASSED})
    check_gold("difference.txt", plain(difference_text(compare(old, new))))


def test_the_same_records_give_the_same_bytes(run, tmp_path):
    for name in ("one", "two"):
        write_reports(run, tmp_path / name, CELLS)
    one, two = (
        {path.relative_to(root): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
        for root in (tmp_path / "one", tmp_path / "two")
    )
    assert one == two
    assert not [path for path in one if path.name.startswith(".")]


def test_data_of_a_page_cannot_close_its_script_element(run, tmp_path):
    write_reports(run, tmp_path / "out", CELLS)
    page = (tmp_path / "out" / "operators" / "onnx.Add.html").read_text(encoding="utf-8")
    assert page.count("</script>") == 2
    assert "<b>" not in page.partition("</style>")[2].partition("<script>")[0].replace("\\u003cb>", "")


def test_pages_reach_for_nothing_outside_their_folder(run, tmp_path):
    write_reports(run, tmp_path / "out", CELLS)
    for path in (tmp_path / "out").rglob("*.html"):
        addresses = re.findall(r"""(?:src|href)=["']?([^"' >]+)""", path.read_text(encoding="utf-8"))
        assert not [address for address in addresses if re.match(r"(?:[a-z]+:)?//", address)]


def test_a_page_of_an_operator_that_is_gone_is_removed(run, tmp_path):
    write_reports(run, tmp_path / "out", CELLS)
    write_records([record for record in example() if record.operator == "Add"], run / "records.jsonl")
    write_reports(run / "records.jsonl", tmp_path / "out", CELLS)
    assert [path.name for path in (tmp_path / "out" / "operators").iterdir()] == ["onnx.Add.html"]


def test_reports_into_the_folder_of_the_run_keep_its_records(run):
    first = write_reports(run, run, CELLS)
    assert write_reports(run, run, CELLS) == first
    assert first.cases == 5


def test_no_records_write_no_report(tmp_path):
    (tmp_path / "records.jsonl").touch()
    with pytest.raises(ReportError):
        write_reports(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_a_denominator_the_whole_of_onnx_counts(run):
    cells = known_cells(example())
    assert CellKey("onnx", "ai.onnx", "Softmax", 1, "float32") in cells
    assert not known_cells([])


def test_a_case_expected_to_fail_is_skipped_in_junit_and_a_surprise_is_a_failure(tmp_path):
    cases = {
        "a": {"outcome": "unsupported", "expected": "unsupported"},
        "b": {"outcome": "passed", "expected": "unsupported", "unexpected": True},
        "c": {"outcome": "passed"},
        "d": {"outcome": "crash"},
    }
    records = [
        Record(**COMMON, case_id=name, operator="Add", stage="lower", **fields) for name, fields in cases.items()
    ]
    write_junit(records, tmp_path / "junit.xml")
    found = ET.parse(tmp_path / "junit.xml").getroot()
    tags = {case.get("name"): [child.tag for child in case] for case in found.iter("testcase")}
    assert tags == {"a": ["skipped"], "b": ["failure"], "c": [], "d": ["error"]}
    assert {name: found.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }
