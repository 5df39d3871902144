"""Caffe networks through the compiler's one door."""

import subprocess
import sys

import numpy as np
import pytest

from compiler import api
from compiler.errors import InvalidModel
from compiler.frontends.caffe.harness_test import draw, weights

NET = """
name: "net"
input: "data" input_dim: 1 input_dim: 2 input_dim: 5 input_dim: 5
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 3 kernel_size: 3 } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
"""
W, B = draw(3, 2, 3, 3), draw(3)
X = draw(1, 2, 5, 5)


def expected():
    """The network in float64, window by window; the pool's second row and column have one element a side."""
    y = np.zeros((3, 3, 3))
    for i in range(3):
        for j in range(3):
            y[:, i, j] = np.maximum((W * X[:, :, i : i + 3, j : j + 3]).sum((1, 2, 3), dtype=np.float64) + B, 0)
    rows = ((slice(0, 2), slice(2, 3)),) * 2
    return np.array([[[[channel[i, j].max() for j in rows[1]] for i in rows[0]] for channel in y]])


def test_a_pair_of_text_and_bytes_compiles_and_runs():
    compiled = api.compile((NET, weights(conv=[W, B])))
    assert (compiled.input_names, compiled.output_names) == (("data",), ("pool",))
    np.testing.assert_allclose(compiled.run([X])[0], expected(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("as_text", [False, True])
def test_a_prototxt_takes_the_weights_beside_it(tmp_path, as_text):
    path = tmp_path / "net.prototxt"
    path.write_text(NET)
    with pytest.raises(InvalidModel, match=r"'conv' .* is missing") as found:
        api.compile(path)
    assert found.value.stage == "import"
    (tmp_path / "net.caffemodel").write_bytes(weights(conv=[W, B]))
    compiled = api.compile(str(path) if as_text else path)
    np.testing.assert_allclose(compiled.run([X])[0], expected(), rtol=1e-5, atol=1e-6)
    assert "net.prototxt:4: conv (Convolution)" in {str(op.location) for op in compiled.graph.ops}


@pytest.mark.parametrize("model", [(), (NET,), (NET, 3), (None, None), (b"x", None)])
def test_other_tuples_are_refused(model):
    with pytest.raises(InvalidModel, match=r"expected a (pair|path)|no network|No such file"):
        api.compile(model)


def test_no_framework_is_imported():
    code = (
        "import sys\nfrom compiler import api\n"
        'net = \'input: "a" input_shape { dim: 1 }\\nlayer { name: "r" type: "ReLU" bottom: "a" top: "b" }\'\n'
        "api.compile((net, None))\n"
        "assert not {'cv2', 'torch', 'tensorflow', 'caffe', 'onnxruntime'} & set(sys.modules), sorted(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr == ""
