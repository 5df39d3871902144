"""Models of one node of ai.onnx.ml."""

from __future__ import annotations

import numpy as np
import onnx

from compiler.frontends.onnx.converters.ml_scores import ML
from compiler.frontends.onnx.harness_test import info_of, run, run_onnxruntime

RANDOM = np.random.default_rng(12)
DTYPES = [np.float32, np.float64, np.int32, np.int64]


def ml_model(op_type, inputs, version, outputs=1, **attributes):
    """``inputs`` are arrays, or type protos for maps. Output types are left open."""
    names = [f"x{index}" for index in range(len(inputs))]
    results = [f"y{index}" for index in range(outputs)]
    node = onnx.helper.make_node(op_type, names, results, domain=ML, **attributes)
    given = [
        onnx.helper.make_value_info(name, item) if isinstance(item, onnx.TypeProto) else info_of(name, item)
        for name, item in zip(names, inputs, strict=True)
    ]
    graph = onnx.helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name=name) for name in results])
    imports = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid(ML, version)]
    return onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)


def run_ml(op_type, inputs, version, outputs=1, **attributes):
    return run(ml_model(op_type, inputs, version, outputs, **attributes), *inputs)


def assert_equal(mine, theirs, tolerance=1e-5):
    theirs = np.asarray(theirs)
    assert mine.shape == theirs.shape
    if mine.dtype.kind == "O":
        assert mine.tolist() == theirs.tolist()
        return
    assert mine.dtype == theirs.dtype
    np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance / 10)


def same_as_onnxruntime(op_type, inputs, version=1, outputs=1, tolerance=1e-5, **attributes):
    expected = run_onnxruntime(ml_model(op_type, inputs, version, outputs, **attributes), *inputs)
    for mine, theirs in zip(run_ml(op_type, inputs, version, outputs, **attributes), expected, strict=True):
        assert_equal(mine, theirs, tolerance)


def numbers(shape, dtype):
    return (RANDOM.normal(size=shape) * 3).astype(dtype)
