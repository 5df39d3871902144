"""Commands on a Caffe network: its weights beside it, given by name, or missing."""

import json
import sys

import numpy as np
import pytest

import opatlas
from generators.caffemodel import caffemodel

NET = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "y" inner_product_param { num_output: 2 } }
"""


@pytest.fixture
def net(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text(NET)
    return path


@pytest.fixture
def weights():
    return caffemodel({"ip": [np.array([[1, 2, 3], [4, 5, 6]], np.float32), np.array([1, -1], np.float32)]})


def run(capsys, *words):
    with pytest.raises(SystemExit) as found:
        opatlas.main([str(word) for word in words])
    return found.value.code or 0, capsys.readouterr()


def test_weights_of_the_same_name_are_found(capsys, net, weights, tmp_path):
    (tmp_path / "net.caffemodel").write_bytes(weights)
    np.savez(tmp_path / "x.npz", data=np.array([[1, 0, -1]], np.float32))
    files = ("--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz")
    assert run(capsys, "simulate", net, *files)[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["y"], [[-1, -3]])
    code, said = run(capsys, "check", net)
    assert code == 0
    assert "agrees" in said.out


def test_weights_of_another_name_are_given(capsys, net, weights, tmp_path):
    other = tmp_path / "other.caffemodel"
    other.write_bytes(weights)
    assert run(capsys, "check", net, "--weights", other)[0] == 0
    assert run(capsys, "compile", net, "--weights", other, "--emit", "onnx", "-o", tmp_path / "net.onnx")[0] == 0
    code, said = run(capsys, "check", tmp_path / "net.onnx", "--weights", other)
    assert code == 2
    assert "expected a .prototxt file" in said.err


@pytest.mark.parametrize(
    ("data", "message"),
    [(None, "layer 'ip' (InnerProduct, line 3): blob 0 (weights) is missing"), (b"\xff", "no caffemodel")],
)
def test_missing_and_broken_weights_are_one_line_and_status_two(capsys, net, tmp_path, data, message):
    if data is not None:
        (tmp_path / "net.caffemodel").write_bytes(data)
    code, said = run(capsys, "simulate", net)
    assert code == 2
    assert message in said.err
    assert "Traceback" not in said.err


def test_opencv_and_onnxruntime_are_both_asked(capsys, net, weights, tmp_path):
    pytest.importorskip("cv2", reason="OpenCV is an extra")
    (tmp_path / "net.caffemodel").write_bytes(weights)
    code, said = run(capsys, "check", net, "--json")
    data = json.loads(said.out)
    assert code == 0
    assert [(one["name"], one["agrees"]) for one in data["references"]] == [
        ("OpenCV", True),
        ("onnxruntime on the exported graph", True),
    ]


def test_without_opencv_onnxruntime_decides_and_the_reason_is_said(capsys, net, weights, tmp_path, monkeypatch):
    (tmp_path / "net.caffemodel").write_bytes(weights)
    monkeypatch.setitem(sys.modules, "cv2", None)
    code, said = run(capsys, "check", net)
    assert code == 0
    assert "OpenCV: not available: OpenCV is not installed" in said.out


def test_weights_by_name_reach_every_command_that_compares(capsys, net, weights, tmp_path):
    other = tmp_path / "other.caffemodel"
    other.write_bytes(weights)
    assert run(capsys, "simulate", net, "--weights", other, "--locate")[0] == 0
    assert run(capsys, "bisect", net, "--weights", other)[0] == 0


def test_a_blob_of_another_shape_and_a_circle_of_layers_are_one_line(capsys, net, tmp_path):
    wrong = caffemodel({"ip": [np.zeros((2, 4), np.float32), np.zeros(2, np.float32)]})
    (tmp_path / "net.caffemodel").write_bytes(wrong)
    code, said = run(capsys, "simulate", net)
    assert (code, "layer 'ip' (InnerProduct, line 3)" in said.err, said.err.strip().count("\n")) == (2, True, 0)
    circle = tmp_path / "circle.prototxt"
    circle.write_text(
        'layer { name: "a" type: "ReLU" bottom: "y" top: "x" }\nlayer { name: "b" type: "ReLU" bottom: "x" top: "y" }\n'
    )
    code, said = run(capsys, "simulate", circle)
    assert (code, "'y'" in said.err, "line 1" in said.err, said.err.strip().count("\n")) == (2, True, True, 0)
