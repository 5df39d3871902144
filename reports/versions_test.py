"""Runs side by side, made by hand: what a column shows, what changed, and what is declared but has no records."""

import configparser
import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from reports.matrix_test import record
from reports.store import write_records
from reports.versions import Declared, compare_versions, declared_versions, versions_text, write_versions

TOX = Path(__file__).parent.parent / "tox.ini"


def run(version, **outcomes):
    made = [record(name, outcome=outcome, operator=name.title()) for name, outcome in outcomes.items()]
    return [one.model_copy(update={"versions": {"onnx": version, "numpy": "2.0"}}) for one in made]


OLD = run("1.18.0", add="passed", sub="unsupported", mul="passed")
NEW = run("1.23.0", add="wrong_result", sub="passed", mul="passed", div="passed")


def test_a_column_a_run_and_what_changed_between_them():
    matrix = compare_versions({"old": OLD, "new": NEW})
    assert [(one.name, one.versions["onnx"], one.cases) for one in matrix.columns] == [
        ("old", "1.18.0", 3),
        ("new", "1.23.0", 4),
    ]
    assert matrix.differing == ["onnx"]
    (step,) = matrix.steps
    assert [one.case_id for one in step.difference.regressions] == ["add"]
    assert [one.case_id for one in step.difference.fixed] == ["sub"]
    assert step.difference.added == ["div"]
    rows = {row.operator: row for row in matrix.rows}
    assert rows["Add"].states == ["passed", "wrong_result"]
    assert [name for name, row in rows.items() if row.differs] == ["Add", "Sub"]
    assert rows["Div"].states == ["unreached", "passed"]


def test_versions_without_records_are_columns_that_did_not_run():
    declared = [
        Declared(packages={"onnx": "1.18"}, environment="old"),
        Declared(packages={"onnx": "1.19"}, environment="middle"),
        Declared(packages={"torch": "2.6"}, not_run="no build for this machine"),
    ]
    matrix = compare_versions({"old": OLD}, declared)
    assert [(one.name, one.not_run) for one in matrix.columns] == [
        ("old", None),
        ("middle", "not among these records"),
        ("torch 2.6", "no build for this machine"),
    ]
    assert matrix.rows[0].states == ["passed", None, None]


def test_the_files_say_the_same(tmp_path):
    for name, records in (("old", OLD), ("new", NEW)):
        write_records(records, tmp_path / name / "records.jsonl")
    matrix, page = write_versions([tmp_path / "old", tmp_path / "new" / "records.jsonl"], tmp_path / "out", [])
    data = json.loads((tmp_path / "out" / "versions.json").read_text())
    assert [column["name"] for column in data["columns"]] == ["old", "new"]
    assert data["steps"][0]["difference"]["regressions"][0]["case_id"] == "add"
    html = page.read_text()
    assert "1.18.0" in html
    assert "regressions: 1" in html
    assert "<script" not in html
    assert versions_text(matrix) is not None


def test_an_entry_has_an_environment_or_a_reason():
    with pytest.raises(ValidationError, match="expected one of them"):
        Declared(packages={"onnx": "1.18"})


def test_the_declared_environments_are_those_of_tox():
    tox = configparser.ConfigParser()
    tox.read(TOX)
    expanded = set()
    for section in tox.sections():
        for prefix, choices, rest in re.findall(r"^testenv:(versions-\w*)(?:\{([^}]*)\})?(.*)$", section):
            assert not rest
            expanded |= {prefix + choice for choice in choices.split(",")}
    assert {one.environment for one in declared_versions() if one.environment} == expanded
    for one in declared_versions():
        for package, version in one.packages.items() if one.environment else ():
            short = {"onnx": "onnx", "onnxruntime": "ort", "tensorflow": "tensorflow"}[package]
            assert f"{short}{version.replace('.', '')}" in one.environment
