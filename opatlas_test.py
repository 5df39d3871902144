import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import opatlas
from reports.store import write_records
from reports.write_test import example

ROOT = Path(__file__).parent
COMMANDS = ["compile", "simulate", "check", "ops", "targets", "report", "diff"]


@pytest.fixture
def run(capsys):
    """Run the command in this process; return its exit status, standard output and standard error."""

    def start(*arguments):
        with pytest.raises(SystemExit) as left:
            opatlas.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return left.value.code or 0, captured.out, captured.err

    return start


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "run" / "records.jsonl"
    write_records(example(), path)
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_examples(run, command):
    status, out, _ = run(command, "--help")
    assert status == 0
    assert f"\n    opatlas {command}" in out.partition("Examples:")[2]


def test_the_list_of_commands_is_whole(run):
    _, out, _ = run("--help")
    listed = [
        line.split()[0]
        for line in out.partition("Commands:")[2].splitlines()
        if line.startswith("  ") and line[2] != " "
    ]
    assert sorted(listed) == sorted(COMMANDS)


def test_python_m_opatlas_is_the_same_command():
    done = subprocess.run(
        [sys.executable, "-m", "opatlas", "targets", "--json"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert json.loads(done.stdout)[0]["target"] == "reference-npu"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["report", "missing"], "missing: no such file or folder"),
        (["diff", "missing", "missing"], "missing: no such file or folder"),
        (["targets", "--explain", "quantum"], "'quantum'"),
        (["ops", "--framework", "onnx", "--coverage", "missing"], "missing: no such file or folder"),
    ],
)
def test_bad_input_is_one_line_and_status_2(run, arguments, part):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("opatlas: error: ")
    assert part in err
    assert err.count("\n") == 1


def test_a_wrong_option_is_status_2_without_a_traceback(run):
    status, _, err = run("ops", "--colour", "red")
    assert status == 2
    assert "--colour" in err
    assert "Traceback" not in err


def test_debug_shows_where_an_error_comes_from(run):
    status, _, err = run("--debug", "report", "missing")
    assert status == 2
    assert "Traceback" in err


def test_a_fault_of_its_own_is_one_line_and_status_3(run, monkeypatch):
    def fail(_name):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("opatlas_work.target_row", fail)
    status, _, err = run("targets")
    assert status == 3
    assert err == "opatlas: error: internal fault, ZeroDivisionError: planted (--debug shows where)\n"


def test_operators_of_the_ir_are_listed_from_the_registry(run):
    status, out, _ = run("ops", "--json")
    rows = {row["operator"]: row for row in json.loads(out)}
    assert status == 0
    assert rows["add"]["kind"] == "primitive"
    assert rows["softmax"]["kind"] == "composite"


def test_framework_operators_show_what_exists_even_if_nothing_converts_it(run, records):
    status, out, _ = run("ops", "--framework", "onnx", "--coverage", records, "--json")
    rows = {(row["operator"], row["version"]): row for row in json.loads(out)}
    assert status == 0
    assert rows["Add", 14] == {
        "operator": "Add",
        "version": 14,
        "manifest": "yes",
        "converter": "yes",
        "coverage": "wrong_result",
    }
    assert rows["SequenceLength", 11]["coverage"] == "unreached"


def test_report_writes_all_forms_and_prints_a_summary(run, records, tmp_path):
    status, out, _ = run("report", records, "-o", tmp_path / "out")
    assert status == 0
    assert "5 cases" in out
    assert "\x1b" not in out
    found = {path.name for path in (tmp_path / "out").iterdir()}
    assert found == {"index.html", "operators", "records.jsonl", "records.csv", "coverage.json", "junit.xml"}


def test_report_of_nothing_writes_nothing(run, tmp_path):
    (tmp_path / "records.jsonl").touch()
    status, _, _ = run("report", tmp_path / "records.jsonl", "-o", tmp_path / "out")
    assert status == 2
    assert not (tmp_path / "out").exists()


@pytest.fixture
def worse(tmp_path):
    """Records in which the first case of the example went wrong."""
    changed = example()
    changed[0] = changed[0].model_copy(update={"outcome": changed[1].outcome})
    path = tmp_path / "worse.jsonl"
    write_records(changed, path)
    return path


def test_a_regression_is_status_1_where_it_is_asked_for(run, records, worse, tmp_path):
    assert run("diff", records, records)[0] == 0
    assert run("diff", records, worse)[0] == 1
    assert run("diff", worse, records)[0] == 0
    assert run("diff", records, worse, "--fail-on", "nothing")[0] == 0
    arguments = ["report", worse, "-o", tmp_path / "out", "--against", records]
    assert run(*arguments)[0] == 0
    assert run(*arguments, "--fail-on", "regression")[0] == 1


def test_the_difference_as_json_names_the_case(run, records, worse):
    _, out, _ = run("diff", records, worse, "--json")
    assert [change["case_id"] for change in json.loads(out)["regressions"]] == ["onnx/Add-14/float32/2x3/random"]


def test_the_command_never_imports_the_suites():
    for name in ("opatlas.py", "opatlas_work.py"):
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not {module for module in imported if module.split(".")[0] in {"conformance", "benchmarks"}}


def test_starting_up_loads_no_framework():
    program = "import sys, opatlas; print(sorted({'onnx', 'onnxruntime', 'torch', 'tensorflow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
