import ast
import importlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import opatlas
from compiler.ops.elementwise import Add, Max
from compiler.rewrite import EXACT, RuleSet, anything, operation, rule
from opatlas import checks
from reports.store import write_records
from reports.write_test import example

ROOT = Path(__file__).parent.parent
COMMANDS = [
    "compile", "simulate", "check", "explain", "bisect", "ops", "targets", "sweep", "llm", "report", "diff", "query",
]  # fmt: skip


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


def test_the_version_is_told_also_where_it_is_not_installed(run):
    status, out, _ = run("--version")
    assert status == 0
    assert re.fullmatch(r"opatlas (\d+\.\d+.*|from source, not installed)\n", out)


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

    monkeypatch.setattr("opatlas.work.target_row", fail)
    status, _, err = run("targets")
    assert status == 3
    assert err == "opatlas: error: internal fault, ZeroDivisionError: planted (--debug shows where)\n"


def test_operators_of_the_ir_are_listed_from_the_registry(run):
    status, out, _ = run("ops", "--json")
    rows = {row["operator"]: row for row in json.loads(out)}
    assert status == 0
    assert rows["add"]["kind"] == "primitive"
    assert rows["softmax"]["kind"] == "composite"


def test_one_operator_is_described_in_full_and_a_wrong_name_meets_near_ones(run):
    assert "softmax" in run("ops", "softmax")[1]
    assert run("ops", "--reference")[1].startswith("# Operators")
    status, _, err = run("ops", "softmaks")
    assert status == 2
    assert "'softmaks' is unknown, expected one of softmax" in err


def test_framework_operators_show_what_exists_even_if_nothing_converts_it(run):
    status, out, _ = run("ops", "--framework", "onnx", "--json")
    rows = {(row["operator"], row["version"]): row for row in json.loads(out)}
    assert status == 0
    assert rows["Add", 14] == {"operator": "Add", "version": 14, "manifest": "yes", "converter": "yes"}
    assert len(rows) == 626


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


def test_records_answer_queries(run, records):
    sql = "SELECT outcome, count(*) AS cases FROM records GROUP BY 1 ORDER BY 1"
    rows = json.loads(run("query", records, sql, "--json")[1])
    assert rows[0] == {"outcome": "crash", "cases": 1}
    status, _, err = run("query", records, "SELECT colour FROM records")
    assert status == 2
    assert err.count("\n") == 1


@pytest.mark.parametrize("content", ["", "no records\n", '{"schema": 99}\n'], ids=["empty", "text", "of the future"])
def test_what_holds_no_records_answers_no_query(run, tmp_path, content):
    path = tmp_path / "records.jsonl"
    path.write_text(content)
    status, out, err = run("query", path, "SELECT count(*) FROM records")
    assert (status, out) == (2, "")
    assert err.startswith(f"opatlas: error: {path}:")
    assert err.count("\n") == 1


def test_the_difference_as_json_names_the_case(run, records, worse):
    _, out, _ = run("diff", records, worse, "--json")
    assert [change["case_id"] for change in json.loads(out)["regressions"]] == ["onnx/Add-14/float32/2x3/random"]


MODEL = (
    """
<ir_version: 8, opset_import: ["" : 17]>
mlp (float[batch, 8] x) => (float[batch, 4] y)
<float[8, 4] w = {"""
    + ", ".join(str((7 * i % 11 - 5) / 8) for i in range(32))
    + """}>
{
    h = MatMul(x, w)
    r = Relu(h)
    y = Softmax<axis = -1>(r)
}
"""
)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "mlp.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return path


@pytest.fixture
def unknown_operator(tmp_path):
    path = tmp_path / "unknown.onnx"
    text = MODEL.replace("Relu(h)", "Frobnicate(h)")
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def test_a_model_simulates_and_tells_its_cost(run, model):
    status, out, _ = run("simulate", model, "--bind", "batch=3", "--json")
    data = json.loads(out)
    assert status == 0
    assert data["outputs"] == [{"name": "y", "type": "float32", "shape": [3, 4]}]
    assert data["placement"] == "accelerator"
    assert data["host_operators"] == []
    assert data["cycles"] > 0
    assert data["traffic_bytes"] >= data["compulsory_bytes"] > 0
    assert sum(data["energy_by_component"].values()) == pytest.approx(data["energy_pj"], rel=1e-9)


def test_the_text_of_a_simulation_has_no_colour_in_a_pipe(run, model):
    status, out, _ = run("simulate", model)
    assert status == 0
    assert "cycles" in out
    assert "no operator on the host" in out
    assert "\x1b" not in out


def test_timing_alone_counts_the_same_cycles_as_the_functional_run(run, model):
    results = [run("simulate", model, "--bind", "batch=3", "--json", *more)[1] for more in ([], ["--timing-only"])]
    functional, timing = map(json.loads, results)
    assert timing["outputs"] is None
    assert timing["cycles"] == functional["cycles"]


def test_outputs_of_given_inputs_are_those_of_onnxruntime(run, model, tmp_path):
    x = np.random.default_rng(1).standard_normal((2, 8)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    status, _, _ = run("simulate", model, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz")
    expected = onnxruntime.InferenceSession(str(model)).run(None, {"x": x})[0]
    assert status == 0
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], expected, rtol=1e-6)


def test_a_trace_has_a_track_an_engine(run, model, tmp_path):
    status, _, _ = run("simulate", model, "--trace", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert status == 0
    assert {event["ph"] for event in events} == {"M", "X"}


def test_a_right_model_agrees_with_onnxruntime(run, model):
    status, out, _ = run("check", model, "--bind", "batch=2", "--json")
    data = json.loads(out)
    assert status == 0
    assert [(output["name"], output["agrees"]) for output in data["outputs"]] == [("y", True)]
    assert data["outputs"][0]["max_abs"] <= data["outputs"][0]["max_abs_allowed"]


def test_a_wrong_result_is_status_1(run, model, monkeypatch):
    real = checks.run_onnxruntime

    def spoil(*given, **options):
        return [array + 1e-3 for array in real(*given, **options)]

    monkeypatch.setattr(checks, "run_onnxruntime", spoil)
    status, out, _ = run("check", model)
    assert status == 1
    assert "differs" in out


def test_a_reference_in_float64_that_errs_excuses_nothing(run, model, monkeypatch):
    real = checks.run_exactly
    monkeypatch.setattr(checks, "run_exactly", lambda *given: [array + 0.1 for array in real(*given)])
    status, out, _ = run("check", model, "--json")
    assert status == 0
    assert json.loads(out)["outputs"][0]["max_abs_allowed"] < 1e-5


def test_a_narrower_run_is_held_against_the_model_cast_to_that_type(run, model):
    arguments = ["check", model, "--target", "edge-npu", "--bind", "batch=3", "--json"]
    data = json.loads(run(*arguments, "--precision", "float16")[1])
    [output] = data["outputs"]
    assert output["agrees"]
    assert output["type"] == "float16[3, 4]"
    assert {entry["operator"] for entry in data["host_operators"]} == {"cast"}
    assert json.loads(run(*arguments)[1])["placement"] == "host"
    status, _, err = run(*arguments, "--precision", "int8")
    assert status == 2
    assert "expected one of float16, bfloat16" in err


def test_locate_names_the_first_node_that_differs(run, model, monkeypatch):
    real = checks.run_onnxruntime

    def spoil(*given, **options):
        y, h, r = real(*given, **options)
        return [y, h, r + 1e-3]

    assert run("simulate", model, "--locate")[0] == 0
    monkeypatch.setattr(checks, "run_onnxruntime", spoil)
    monkeypatch.setattr(checks, "run_exactly", lambda *_: None)
    status, out, _ = run("simulate", model, "--locate", "--json")
    assert status == 1
    assert json.loads(out)["first"]["operator"] == "Relu"


@pytest.mark.parametrize("command", ["compile", "simulate"])
def test_an_unknown_operator_is_named_on_one_line(run, unknown_operator, command):
    status, out, err = run(command, unknown_operator)
    assert (status, out) == (2, "")
    assert "Frobnicate" in err
    assert err.count("\n") == 1


def test_check_answers_no_to_an_unknown_operator(run, unknown_operator):
    status, _, err = run("check", unknown_operator)
    assert status == 1
    assert "Frobnicate" in err


@pytest.mark.parametrize(
    "content", [b"", b"no model at all", b"\x08\x08\x12"], ids=["empty", "not a protobuf", "truncated"]
)
def test_a_broken_file_is_one_line_and_nothing_is_written(run, tmp_path, content):
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    status, _, err = run("compile", path, "-o", tmp_path / "out.txt")
    assert status == 2
    assert "broken.onnx" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--target", "quantum"], "quantum"),
        (["--bind", "batch"], "'batch'"),
        (["--bind", "batch=many"], "'batch=many'"),
        (["--bind", "batch=\u0663"], "expected NAME=NUMBER"),
        (["--bind", "rows=2"], "'rows' is no symbolic dim"),
        (["--bind", "rows=2", "--timing-only"], "'rows' is no symbolic dim"),
        (["--seed", "-1"], "seed -1 is negative"),
        (["--inputs", "missing.npz"], "missing.npz"),
    ],
)
def test_wrong_values_of_options_are_one_line(run, model, arguments, part):
    status, _, err = run("simulate", model, *arguments)
    assert status == 2
    assert part in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("size", [1 << 33, 1 << 62], ids=["more than memory", "more than any"])
def test_sizes_beyond_what_is_drawn_are_refused(run, tmp_path, size):
    path = tmp_path / "wide.onnx"
    text = f'<ir_version: 10, opset_import: ["": 21]> g (float[{size}, 4] x) => (float[N, M] y) {{ y = Relu(x) }}'
    onnx.save(onnx.parser.parse_model(text), path)
    status, _, err = run("simulate", path)
    assert status == 2
    assert f"input 'x' has {4 * size} elements" in err


def _npz_of_objects(path):
    np.savez(path, x=np.array([{}], dtype=object))


def _npz_cut_short(path):
    np.savez(path, x=np.zeros((2, 8), np.float32))
    path.write_bytes(path.read_bytes()[:-30])


def _npz_with_a_flipped_byte(path):
    np.savez(path, x=np.zeros((2, 8), np.float32))
    data = bytearray(path.read_bytes())
    data[200] ^= 0xFF
    path.write_bytes(data)


def _npz_that_is_empty(path):
    path.touch()


def _npz_that_is_a_single_array(path):
    with path.open("wb") as stream:
        np.save(stream, np.zeros((2, 8), np.float32))


def _npz_of_text(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", "no array")


def _npz_that_claims_a_huge_array(path):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999,), }".ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


@pytest.mark.parametrize(
    "damage",
    [
        _npz_of_objects,
        _npz_cut_short,
        _npz_with_a_flipped_byte,
        _npz_that_is_empty,
        _npz_that_is_a_single_array,
        _npz_of_text,
        _npz_that_claims_a_huge_array,
        Path.mkdir,
    ],
    ids=lambda damage: damage.__name__,
)
def test_an_npz_file_that_cannot_be_read_is_one_line(run, model, tmp_path, damage):
    path = tmp_path / "in.npz"
    damage(path)
    status, _, err = run("simulate", model, "--inputs", path)
    assert status == 2
    assert f"{path}: no readable npz file" in err
    assert err.count("\n") == 1


def test_inputs_of_the_other_byte_order_are_taken(run, model, tmp_path):
    x = np.arange(16, dtype=np.float32).reshape(2, 8) / 8
    for order in "<>":
        np.savez(tmp_path / f"{order}.npz", x=x.astype(f"{order}f4"))
        assert (
            run("simulate", model, "--inputs", tmp_path / f"{order}.npz", "--outputs", tmp_path / f"{order}y")[0] == 0
        )
    assert (tmp_path / "<y").read_bytes() == (tmp_path / ">y").read_bytes()


def test_memory_that_is_not_there_is_status_2(run, model, monkeypatch):
    def allocate(*_arguments, **_options):
        raise MemoryError("Unable to allocate 8.00 EiB")

    monkeypatch.setattr("opatlas.work.compile_model", allocate)
    status, _, err = run("simulate", model)
    assert status == 2
    assert err == "opatlas: error: this needs more memory than there is here: Unable to allocate 8.00 EiB\n"


@pytest.mark.parametrize("name", ["file", "allow_pickle", "a/b", "../up", "two\nlines", "\u6f22"])
def test_outputs_keep_their_names_whatever_they_are(tmp_path, name):
    opatlas.work.save_arrays(tmp_path / "y.npz", [name], [np.arange(3)])
    assert list(opatlas.work.load_arrays(tmp_path / "y.npz")[name]) == [0, 1, 2]


@pytest.mark.parametrize(("name", "what"), [("y" * 70_000, "'y{40}' .* too long"), ("a\0b", "with a zero byte")])
def test_an_output_name_that_no_file_takes_is_refused_and_nothing_is_written(tmp_path, name, what):
    with pytest.raises(opatlas.work.BadOption, match=what):
        opatlas.work.save_arrays(tmp_path / "y.npz", [name], [np.arange(3)])
    assert not list(tmp_path.iterdir())


def test_a_name_that_would_steer_the_terminal_is_shown_as_escapes(run, tmp_path):
    path = tmp_path / "name.onnx"
    node = onnx.helper.make_node("Nope", ["x"], ["y"], name="\x1b[31mred\0\u202e")
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy"]
    opset = onnx.helper.make_opsetid("", 21)
    onnx.save(
        onnx.helper.make_model(
            onnx.helper.make_graph([node], "g", values[:1], values[1:]), opset_imports=[opset], ir_version=10
        ),
        path,
    )
    _, _, err = run("simulate", path)
    assert r"(node '\x1b[31mred\x00\u202e')" in err


def test_inputs_that_do_not_fit_the_model_are_refused_by_name(run, model, tmp_path):
    np.savez(tmp_path / "in.npz", z=np.zeros((2, 8), np.float32))
    status, _, err = run("simulate", model, "--inputs", tmp_path / "in.npz")
    assert status == 2
    assert "'z'" in err


def test_the_graph_compiles_to_text(run, model):
    status, out, _ = run("compile", model, "--emit", "ir")
    assert status == 0
    assert '"matmul"' in out


def test_a_program_that_was_written_simulates_to_the_same_cycles(run, model, tmp_path):
    path = tmp_path / "mlp.program"
    assert run("compile", model, "--bind", "batch=3", "-o", path)[0] == 0
    from_program = json.loads(run("simulate", path, "--timing-only", "--json")[1])
    from_model = json.loads(run("simulate", model, "--bind", "batch=3", "--timing-only", "--json")[1])
    assert from_program["cycles"] == from_model["cycles"]


def test_a_program_that_was_written_computes_the_same(run, model, tmp_path):
    path, x = tmp_path / "mlp.program", np.ones((1, 8), np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    assert run("compile", model, "-o", path)[0] == 0
    assert run("simulate", path, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz")[0] == 0
    expected = onnxruntime.InferenceSession(str(model)).run(None, {"x": x})[0]
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], expected, rtol=1e-6)


def test_a_program_with_a_typing_error_is_one_line_with_its_place(run, model, tmp_path):
    path = tmp_path / "mlp.program"
    run("compile", model, "-o", path)
    path.write_text(path.read_text().replace("vector(2, 0", "vektor(2, 0"))
    status, _, err = run("simulate", path, "--timing-only")
    assert status == 2
    assert "vektor" in err


def test_a_program_without_a_needed_wait_is_refused(run, model, tmp_path):
    path = tmp_path / "mlp.program"
    run("compile", model, "-o", path)
    path.write_text(re.sub(r", waits=\[[^]]*\]", "", path.read_text()))
    status, out, err = run("simulate", path, "--timing-only")
    assert (status, out) == (2, "")
    assert "expected a wait that orders them" in err


def test_a_program_computes_on_the_inputs_that_its_model_would_draw(run, model, tmp_path):
    run("compile", model, "--bind", "batch=2", "-o", tmp_path / "mlp.program")
    for name, options in ((model, ("--bind", "batch=2")), (tmp_path / "mlp.program", ())):
        assert run("simulate", name, *options, "--outputs", tmp_path / f"{Path(name).suffix}.npz")[0] == 0
    one, two = (np.load(tmp_path / f"{suffix}.npz")["y"] for suffix in (".onnx", ".program"))
    np.testing.assert_array_equal(one, two)


def test_a_program_does_not_run_on_half_of_its_inputs(run, model, tmp_path):
    run("compile", model, "-o", tmp_path / "mlp.program")
    np.savez(tmp_path / "x.npz", other=np.zeros(1))
    status, _, err = run("simulate", tmp_path / "mlp.program", "--inputs", tmp_path / "x.npz")
    assert status == 2
    assert "['x']" in err


@pytest.mark.parametrize("dtype", ["bfloat16", "string"])
def test_inputs_of_types_that_npz_does_not_know_come_back_as_they_went_out(run, tmp_path, dtype):
    text = f'<ir_version: 10, opset_import: ["": 21]> g ({dtype}[3] x) => ({dtype}[3] y) {{ y = Identity(x) }}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "same.onnx")
    x = np.array(["a", "", "bc"]) if dtype == "string" else np.array([1, -2, 0.5], ml_dtypes.bfloat16)
    np.savez(tmp_path / "x.npz", x=x)
    files = ("--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz")
    assert run("simulate", tmp_path / "same.onnx", *files)[0] == 0
    found = np.load(tmp_path / "y.npz", allow_pickle=True)["y"]
    assert [str(item) for item in found] == list(x) if dtype == "string" else found.tobytes() == x.tobytes()


def test_sizes_that_nobody_gave_are_named(run, model):
    assert "are 1: batch" in run("simulate", model)[2]
    assert "batch" not in run("simulate", model, "--bind", "batch=2")[2]
    status, _, err = run("simulate", model, "--timing-only")
    assert status == 2
    assert "--bind batch=N" in err


def test_passes_are_dumped_whatever_is_emitted(run, model, tmp_path):
    run("compile", model, "--emit", "ir", "--dump", tmp_path / "passes", "-o", tmp_path / "mlp.mlir")
    assert len(list((tmp_path / "passes").glob("*.mlir"))) > 1


def test_the_rules_of_the_examples_exist(run, model):
    examples = re.findall(r"model.onnx --rule (\w+)", run("explain", "--help")[1])
    assert examples
    assert all(run("explain", model, "--rule", rule)[0] == 0 for rule in examples)


@pytest.mark.parametrize("emit", ["ir", "onnx"])
def test_a_graph_that_inputs_decide_is_not_written_empty(run, tmp_path, emit):
    text = """<ir_version: 10, opset_import: ["": 18]> g (float[2, 3] x, int64[1] axes) => (float[m, n] y) {
        y = ReduceSum(x, axes)
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "axes.onnx")
    status, _, err = run("compile", tmp_path / "axes.onnx", "--emit", emit, "-o", tmp_path / "out")
    assert (status, (tmp_path / "out").exists()) == (2, False)
    assert "depends on its inputs" in err


def test_the_graph_as_a_model_computes_the_same(run, model, tmp_path):
    path = tmp_path / "again.onnx"
    assert run("compile", model, "--emit", "onnx", "-o", path)[0] == 0
    x = np.ones((2, 8), np.float32)
    one, two = (onnxruntime.InferenceSession(str(name)).run(None, {"x": x})[0] for name in (model, path))
    np.testing.assert_allclose(one, two, rtol=1e-6)


def test_the_graph_as_a_model_of_an_older_operator_set(run, model, tmp_path):
    path = tmp_path / "older.onnx"
    assert run("compile", model, "--emit", "onnx", "--opset", "13", "-o", path)[0] == 0
    assert onnx.load(path).opset_import[0].version == 13
    status, _, err = run("compile", model, "--emit", "onnx", "--opset", "12", "-o", path)
    assert (status, "operator set 12 cannot be written; expected 13 to" in err) == (2, True)
    assert "--emit onnx" in run("compile", model, "--opset", "13")[2]


def test_rules_are_listed_with_what_they_do_to_the_numbers(run):
    rows = {row["rule"]: row for row in json.loads(run("explain", "--json")[1])}
    assert rows["batch_norm_into_conv"]["numerics"] != "exact"
    assert all(row["what it does"] for row in rows.values())


def test_an_unknown_rule_is_one_line_with_those_that_exist(run, model):
    status, _, err = run("explain", model, "--rule", "make_it_fast")
    assert status == 2
    assert "'make_it_fast'" in err
    assert "batch_norm_into_conv" in err


def test_a_rule_is_explained_at_each_operation_that_its_root_takes(run, tmp_path):
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y, float[2] z)
    <float[2] tiny = {0.0, 1.0}, float[2] none = {-0.0, -0.0}> { y = Add(x, tiny)  z = Add(x, none) }
    """
    onnx.save(onnx.parser.parse_model(text), tmp_path / "adds.onnx")
    found = [
        json.loads(run("explain", tmp_path / "adds.onnx", "--rule", rule, "--json")[1]) for rule in identity_rules(run)
    ]
    fires, refuses = next((lines[1], lines[0]) for lines in found if "fires" in lines[1])
    assert "fires" in fires
    assert "does not fire" in refuses


def identity_rules(run):
    return [row["rule"] for row in json.loads(run("explain", "--json")[1]) if "identity" in row["rule"]]


def test_bisection_finds_the_rewrite_that_breaks_the_result(run, model, monkeypatch):
    assert run("bisect", model)[0] == 0
    canonicalize = importlib.import_module("compiler.passes.canonicalize")

    @rule(operation(Max, anything("x"), anything("floor")), EXACT)
    def spoil(match):
        """Take the floor of a maximum for the maximum."""
        return match.build(Add, match["floor"], match["x"])

    monkeypatch.setattr(canonicalize, "RULES", RuleSet((*canonicalize.RULES.rules, spoil)))
    status, out, _ = run("bisect", model, "--json")
    assert status == 1
    assert json.loads(out)["rewrite"].startswith("spoil at 'max'")


def test_the_readme_names_commands_and_options_that_exist(run):
    lines = re.findall(r"opatlas ([a-z]+)([^`\n]*)", (ROOT / "README.md").read_text(encoding="utf-8"))
    used = {(command, option) for command, rest in lines for option in re.findall(r"--[a-z-]+", rest)}
    commands = {command for command, rest in lines if command in COMMANDS}
    assert commands == set(COMMANDS)
    for command, option in sorted(used):
        assert option in run(command, "--help")[1], (command, option)


def test_the_command_never_imports_the_suites():
    for path in (ROOT / "opatlas").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not {module for module in imported if module.split(".")[0] in {"conformance", "benchmarks"}}


def test_starting_up_loads_no_framework():
    program = "import sys, opatlas; print(sorted({'onnx', 'onnxruntime', 'torch', 'tensorflow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
