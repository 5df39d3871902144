"""Sweeps: the grid, the front, what is kept of an interrupted run, and workers of each kind."""

import json

import onnx
import onnx.parser
import pytest

import opatlas
from compiler import api
from opatlas.sweep import Study, axes_of, front, grid, kept_points, run_points, summary
from opatlas.work import BadOption

MODEL = """
<ir_version: 9, opset_import: ["": 20]>
net (float[8, 64] x, float[64, 48] w) => (float[8, 48] y) {
    a = MatMul (x, w)
    y = Softmax (a)
}
"""
AXES = {"rows": ["8", "16"], "bandwidth": ["4", "32"]}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "net.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), file)
    return file


@pytest.fixture(scope="module")
def study(path):
    compiled = api.compile(path)
    return Study.of(compiled, {}, compiled.target, grid(AXES))


@pytest.fixture
def run(capsys):
    def start(*arguments):
        with pytest.raises(SystemExit) as left:
            opatlas.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return left.value.code or 0, captured.out, captured.err

    return start


def test_axes_may_stand_in_one_option_or_in_several():
    expected = {"sram": ["1MB", "2MB"], "rows": ["16"], "vector.cycles.simple": ["1", "2"]}
    assert axes_of(["sram=1MB, 2MB,rows=16", "vector.cycles.simple=1,2"]) == expected
    assert axes_of(["sram=1MB,2MB", "rows=16,vector.cycles.simple=1,2"]) == expected


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([], "no axis"),
        (["16,rows=8"], "found '16', expected name=value"),
        (["rows="], "found 'rows='"),
        (["rows=8,,16"], "found ''"),
        (["=8"], "without a name"),
        (["rows=8", "rows=16"], "axis 'rows' twice"),
        (["rows=8,8"], "rows=8 twice"),
        ([",".join(f"a{i}=" + ",".join(map(str, range(100))) for i in range(4))], "more than 1,000,000 points"),
    ],
)
def test_wrong_axes_are_refused(texts, said):
    with pytest.raises(BadOption, match=said):
        axes_of(texts)


def test_the_grid_has_every_combination():
    assert grid({"a": ["1", "2"], "b": ["x", "y"]}) == [
        {"a": "1", "b": "x"}, {"a": "1", "b": "y"}, {"a": "2", "b": "x"}, {"a": "2", "b": "y"},
    ]  # fmt: skip


def test_the_front_is_what_no_other_point_beats():
    records = [
        {"t": 1, "e": 9}, {"t": 2, "e": 5}, {"t": 2, "e": 6}, {"t": 3, "e": 5}, {"t": 9, "e": 1}, {"t": 9, "e": 1},
        {"refused": "why"},
    ]  # fmt: skip
    assert front(records, ["t", "e"]) == [True, True, False, False, True, True, False]
    assert front(records, ["t"]) == [True, False, False, False, False, False, False]


def test_a_point_costs_what_its_target_costs(study, path):
    from compiler.targets import load_target
    from compiler.targets.vary import vary

    for point in grid(AXES):
        target = vary(load_target("reference-npu"), point)
        assert study.run(point)["cycles"] == api.compile(path, target=target).estimate().cycles


def test_a_point_that_cannot_be_is_kept_with_its_reason(study):
    record = study.run({"sram": "64", "rows": "8", "bandwidth": "4"})
    assert record["host_cycles"] > 0 if "refused" not in record else record["refused"]


def test_points_are_done_once_and_what_was_cut_off_is_done_again(study, tmp_path, monkeypatch):
    file = tmp_path / "points.jsonl"
    points = grid(AXES)
    stopped = run_points(study, points, file, jobs=1)
    first = next(stopped)
    stopped.close()  # as an interrupt does
    with file.open("a") as stream:
        stream.write('{"point": {"rows"')
    assert list(kept_points(file, study.digest).values()) == [first]
    records = list(run_points(study, points, file, jobs=1))
    assert len(records) == 4
    assert len(file.read_text().splitlines()) == 5
    monkeypatch.setattr("opatlas.sweep._workers", lambda *_: pytest.fail("nothing is left to do"))
    again = list(run_points(study, points, file))
    assert sorted(map(str, again)) == sorted(map(str, records))
    assert summary("m", study, AXES, again, ["seconds"]) == summary("m", study, AXES, records[::-1], ["seconds"])


def test_points_of_another_study_are_refused(study, path, tmp_path):
    file = tmp_path / "points.jsonl"
    file.write_text('{"schema": "opatlas.sweep", "version": 1, "study": "another"}\n')
    with pytest.raises(BadOption, match="points of another model or target"):
        next(run_points(study, grid(AXES), file))
    file.write_text("nothing\n")
    with pytest.raises(BadOption, match="is no file of points"):
        next(run_points(study, grid(AXES), file))


def test_the_same_points_come_from_a_dask_cluster(study, tmp_path):
    distributed = pytest.importorskip("dask.distributed", reason="Dask is an extra")
    points = grid(AXES)
    with distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        there = list(run_points(study, points, tmp_path / "there.jsonl", scheduler=cluster.scheduler_address))
    assert sorted(map(str, there)) == sorted(str(study.run(point)) for point in points)


def test_a_scheduler_that_is_not_there_is_refused(study, tmp_path, monkeypatch):
    distributed = pytest.importorskip("dask.distributed", reason="Dask is an extra")

    def client(address, **_):
        raise OSError(f"Timed out trying to connect to {address}")

    monkeypatch.setattr(distributed, "Client", client)
    with pytest.raises(BadOption, match="found no Dask scheduler at tcp://nowhere:1"):
        next(run_points(study, grid(AXES), tmp_path / "x.jsonl", scheduler="tcp://nowhere:1"))


def test_the_command_writes_the_same_bytes_whatever_order_points_come_in(run, path, tmp_path):
    folders = tmp_path / "one", tmp_path / "two"
    for folder, jobs in zip(folders, (1, 2), strict=True):
        over = ("--over", "rows=8,16,bandwidth=4,32", "--over", "dtype=float32,float16")
        status, out, _ = run("sweep", path, *over, "-o", folder, "--jobs", jobs)
        assert status == 0
        assert "8 points" in out
    for name in ("index.html", "sweep.csv", "sweep.json"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
    data = json.loads((folders[0] / "sweep.json").read_text())
    best = [point for point in data["points"] if point["on_front"]]
    assert min(point["seconds"] for point in data["points"]) == min(point["seconds"] for point in best)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--over", "rows=8", "--objectives", "beauty"), "found 'beauty', expected some of cycles"),
        (("--over", "colour=8"), "'colour' is no figure of a target"),
        (("--over", "rows=0"), "'matrix.rows' is 0"),
        (("--over", "target=nothing"), "target 'nothing' is unknown"),
        (("--over", "dtype=int8"), "dtype 'int8' is unknown"),
    ],
)
def test_a_wrong_sweep_is_refused_before_anything_runs(run, path, tmp_path, arguments, said):
    status, _, err = run("sweep", path, *arguments, "-o", tmp_path / "out")
    assert status == 2
    assert said in err
    assert not (tmp_path / "out").exists()
