import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reports.errors import NoRecords, ReportError, UnknownSchema
from reports.record import Record
from reports.record_test import MINIMAL
from reports.store import RecordWriter, clear, merge, read_records, require


def record(case_id="a", **fields):
    return Record(**{**MINIMAL, "case_id": case_id, **fields})


def test_records_come_back_in_order(tmp_path):
    with RecordWriter(tmp_path / "records-main.jsonl") as writer:
        writer.write(record("b"))
        writer.write(record("a"))
    assert [found.case_id for found in read_records(tmp_path)] == ["b", "a"]


def test_each_record_is_on_disk_before_the_next_case_even_if_the_process_dies(tmp_path):
    path = tmp_path / "records-gw0.jsonl"
    program = (
        "import os\nfrom reports.store import RecordWriter\nfrom reports.store_test import record\n"
        f"writer = RecordWriter({str(path)!r})\nwriter.write(record('a'))\nos._exit(1)\n"
    )
    root = Path(__file__).parents[1]
    subprocess.run([sys.executable, "-c", program], check=False, cwd=root, env={**os.environ, "PYTHONPATH": str(root)})
    assert [found.case_id for found in read_records(path)] == ["a"]


def test_a_torn_last_line_is_reported_and_kept_apart(tmp_path):
    path = tmp_path / "records-gw0.jsonl"
    line = record("a").to_line()
    path.write_text(line + "\n" + line[:40])
    found = read_records(path)
    assert [entry.case_id for entry in found] == ["a"]
    assert [(bad.path, bad.line) for bad in found.bad_lines] == [(path, 2)]
    assert "cut off" in str(found.bad_lines[0])


def test_appending_after_a_torn_line_loses_no_record(tmp_path):
    path = tmp_path / "records-gw0.jsonl"
    path.write_text(record("a").to_line()[:40])
    with RecordWriter(path) as writer:
        writer.write(record("b"))
    found = read_records(path)
    assert [entry.case_id for entry in found] == ["b"]
    assert len(found.bad_lines) == 1


def test_bytes_that_are_no_text_are_one_bad_line(tmp_path):
    path = tmp_path / "records-gw0.jsonl"
    path.write_bytes(b"\xff\xfe\x00\n" + record("a").to_line().encode() + b"\n")
    found = read_records(path)
    assert len(found) == 1
    assert len(found.bad_lines) == 1


def test_a_line_nested_without_end_is_one_bad_line(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text("[" * 100_000 + "\n")
    found = read_records(path)
    assert (len(found), len(found.bad_lines)) == (0, 1)


def test_a_line_with_a_wrong_field_names_the_field(tmp_path):
    path = tmp_path / "records.jsonl"
    data = json.loads(record("a").to_line())
    path.write_text(json.dumps({**data, "outcome": "green"}) + "\n")
    assert str(read_records(path).bad_lines[0]).startswith(f"{path}:1: outcome: ")


def test_records_of_a_newer_schema_are_refused(tmp_path):
    path = tmp_path / "records.jsonl"
    data = json.loads(record("a").to_line())
    path.write_text(json.dumps({**data, "schema": 2, "shiny": 1}) + "\n")
    with pytest.raises(UnknownSchema, match=r"records\.jsonl:1: records of schema 2"):
        read_records(path)


def test_the_last_of_duplicates_wins_but_other_targets_are_other_measurements(tmp_path):
    with RecordWriter(tmp_path / "records-main.jsonl") as writer:
        writer.write(record("a", outcome="timeout"))
        writer.write(record("a", target="edge-npu", outcome="unsupported"))
        writer.write(record("a", outcome="passed"))
    found = read_records(tmp_path)
    assert [(entry.target, entry.outcome) for entry in found] == [
        ("reference-npu", "passed"),
        ("edge-npu", "unsupported"),
    ]
    assert found.duplicates == 1


def test_merging_gives_the_same_bytes_for_any_distribution_over_workers(tmp_path):
    cases = [record(name) for name in "dacb"]
    for folder, split in (("one", 4), ("two", 2)):
        for index, entry in enumerate(cases):
            with RecordWriter.for_worker(tmp_path / folder, f"gw{index // split}") as writer:
                writer.write(entry)
    one, two = (merge(tmp_path / folder).read_bytes() for folder in ("one", "two"))
    assert one == two
    assert [json.loads(line)["case_id"] for line in one.splitlines()] == list("abcd")


def test_merging_writes_down_the_lines_that_it_could_not_read(tmp_path):
    (tmp_path / "records-gw0.jsonl").write_text(record("a").to_line() + "\n{")
    merge(tmp_path)
    assert "records-gw0.jsonl:2" in (tmp_path / "records-unreadable.txt").read_text()
    (tmp_path / "records-gw0.jsonl").write_text(record("a").to_line() + "\n")
    merge(tmp_path)
    assert not (tmp_path / "records-unreadable.txt").exists()


def test_records_that_workers_wrote_after_the_last_merge_win_over_the_merged_file(tmp_path):
    with RecordWriter.for_worker(tmp_path, "gw0") as writer:
        writer.write(record("a"))
    merged = merge(tmp_path)
    with RecordWriter.for_worker(tmp_path, "gw0") as writer:
        writer.write(record("b"))
    assert [entry.case_id for entry in read_records(tmp_path)] == ["a", "b"]
    later = (tmp_path / "records-gw0.jsonl").stat().st_mtime_ns + 1
    os.utime(merged, ns=(later, later))
    assert [entry.case_id for entry in read_records(tmp_path)] == ["a"]


def test_nothing_to_read_is_an_error_not_an_empty_success(tmp_path):
    with pytest.raises(NoRecords, match="no such file"):
        read_records(tmp_path / "missing")
    with pytest.raises(NoRecords, match="holds neither"):
        read_records(tmp_path)
    with pytest.raises(NoRecords):
        merge(tmp_path)
    empty = tmp_path / "records.jsonl"
    empty.touch()
    with pytest.raises(ReportError, match="holds no record"):
        require(read_records(empty), empty)


def test_clearing_removes_the_records_of_an_earlier_run_only(tmp_path):
    with RecordWriter.for_worker(tmp_path, "gw0") as writer:
        writer.write(record())
    merge(tmp_path)
    (tmp_path / "notes.txt").touch()
    clear(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
