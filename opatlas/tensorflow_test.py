"""Commands on what TensorFlow writes: run and held to TensorFlow, or refused in one line."""

import os

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="commands on TensorFlow's files need TensorFlow")

import opatlas  # noqa: E402


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    model = tf.keras.Sequential([tf.keras.Input((6, 6, 2)), tf.keras.layers.Conv2D(3, 3), tf.keras.layers.Flatten()])
    model.save(folder / "net.keras")
    model.export(str(folder / "saved"), verbose=False)
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [2, 3], "x")
        tf.nn.relu(x, name="y")
    (folder / "frozen.pb").write_bytes(graph.as_graph_def().SerializeToString())
    return folder


def run(capsys, *words):
    with pytest.raises(SystemExit) as found:
        opatlas.main([str(word) for word in words])
    return found.value.code or 0, capsys.readouterr()


@pytest.mark.parametrize("name", ["net.keras", "saved", "frozen.pb"])
def test_a_model_is_held_to_tensorflow(capsys, files, name):
    code, said = run(capsys, "check", files / name)
    assert code == 0
    assert "agrees" in said.out


def test_a_model_is_compiled_and_simulated(capsys, files, tmp_path):
    assert run(capsys, "compile", files / "saved", "--emit", "onnx", "-o", tmp_path / "net.onnx")[0] == 0
    np.savez(tmp_path / "x.npz", x=np.array([[1, -2, 3], [-4, 5, -6]], np.float32))
    outputs = tmp_path / "y.npz"
    assert run(capsys, "simulate", files / "frozen.pb", "--inputs", tmp_path / "x.npz", "--outputs", outputs)[0] == 0
    np.testing.assert_array_equal(np.load(outputs)["y"], [[1, 0, 3], [0, 5, 0]])


def test_sizes_that_are_open_have_names(capsys, files):
    assert run(capsys, "simulate", files / "net.keras", "--timing-only", "--bind", "batch=4")[0] == 0


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [("no.pb", b"\xff\xff", "no GraphDef"), ("no.keras", b"?", "is no Keras model"), ("no.keras", None, "exist")],
)
def test_broken_and_missing_files_are_one_line_and_status_two(capsys, tmp_path, name, data, message):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    code, said = run(capsys, "check", tmp_path / name)
    assert code == 2
    assert message in said.err
    assert "Traceback" not in said.err


def test_a_folder_that_is_no_model_is_refused(capsys, tmp_path):
    code, said = run(capsys, "compile", tmp_path)
    assert code == 2
    assert "is no SavedModel" in said.err
    code, said = run(capsys, "compile", tmp_path / "..\0" / "x")
    assert code == 2
