"""One way in for every kind of model, which loads no stage of the compiler and no framework before it is used."""

import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from compiler.errors import InvalidModel

TEXT = (
    """<ir_version: 10, opset_import: ["": 18]> g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x) z = Abs(x) }"""
)
NET = """input: "x" input_shape { dim: 2 dim: 3 }
layer { name: "fc" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 2 bias_term: false } }"""
X = np.array([1, -2], np.float32)


@pytest.mark.parametrize("as_path", [True, False])
def test_an_onnx_model_as_a_path_or_an_object(tmp_path, as_path):
    model = onnx.parser.parse_model(TEXT)
    onnx.save(model, tmp_path / "m.onnx")
    y, z = compiler.compile(tmp_path / "m.onnx" if as_path else model, target="edge-npu").run([X])
    assert (y.tolist(), z.tolist()) == ([-1, 2], [1, 2])


def test_a_pair_of_a_prototxt_and_a_caffemodel(tmp_path):
    caffe_pb2 = pytest.importorskip("compiler.frontends.caffe.caffe_pb2")
    weights = caffe_pb2.NetParameter()
    blob = weights.layer.add(name="fc", type="InnerProduct").blobs.add()
    blob.shape.dim.extend([2, 3])
    blob.data.extend(range(6))
    paths = tmp_path / "net.prototxt", tmp_path / "other.caffemodel"
    paths[0].write_text(NET)
    paths[1].write_bytes(weights.SerializeToString())
    x = np.ones((2, 3), np.float32)
    for pair in (paths, (NET, weights.SerializeToString())):
        assert compiler.compile(pair).run([x])[0].tolist() == [[3, 12], [3, 12]]
    with pytest.raises(InvalidModel, match="other\\.caffemodel"):
        paths[1].unlink()
        compiler.compile(paths)


def test_a_module_with_example_inputs_and_an_exported_program():
    torch = pytest.importorskip("torch", reason="torch is an extra")

    class Both(torch.nn.Module):
        def forward(self, x):
            return {"b": -x, "a": (x.abs(), x + 1)}

    given = [torch.tensor(X)]
    program = torch.export.export(Both(), tuple(given))
    for compiled in (compiler.compile(Both(), given), compiler.compile(program)):
        assert [value.tolist() for value in compiled.run([X])] == [[-1, 2], [1, 2], [2, -1]]


def test_importing_the_package_is_cheap():
    code = "import sys, compiler; print(sorted({'numpy', 'onnx', 'torch', 'compiler.api'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
