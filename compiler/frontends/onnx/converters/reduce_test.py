import numpy as np
import pytest

from compiler.errors import InvalidModel
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, run_node

X = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4) / 8
REDUCTIONS = {
    "ReduceL1": lambda x, **k: np.abs(x).sum(**k),
    "ReduceL2": lambda x, **k: np.sqrt((x * x).sum(**k)),
    "ReduceLogSum": lambda x, **k: np.log(x.sum(**k)),
    "ReduceLogSumExp": lambda x, **k: np.log(np.exp(x).sum(**k)),
    "ReduceMax": lambda x, **k: x.max(**k),
    "ReduceMean": lambda x, **k: x.mean(**k),
    "ReduceMin": lambda x, **k: x.min(**k),
    "ReduceProd": lambda x, **k: x.prod(**k),
    "ReduceSum": lambda x, **k: x.sum(**k),
    "ReduceSumSquare": lambda x, **k: (x * x).sum(**k),
}


def ints(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("opset", [1, 11, 13, 18, 20, 28])
@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_reductions_in_every_version(op_type, opset):
    function = REDUCTIONS[op_type]
    wide = X.astype(np.float64)

    def reduced(axes, **attributes):
        if axes is None or opset >= (13 if op_type == "ReduceSum" else 18):
            arrays = [X] if axes is None else [X, ints(*axes)]
            return run_node(op_type, arrays, opset, known=range(1, len(arrays)), **attributes)[0]
        return run_node(op_type, [X], opset, axes=axes, **attributes)[0]

    np.testing.assert_allclose(reduced(None), function(wide, keepdims=True), rtol=2e-6)
    np.testing.assert_allclose(reduced(None, keepdims=0), function(wide), rtol=2e-6)
    np.testing.assert_allclose(reduced([1]), function(wide, axis=1, keepdims=True), rtol=2e-6)
    np.testing.assert_allclose(reduced([2, 0], keepdims=0), function(wide, axis=(0, 2)), rtol=2e-6)
    np.testing.assert_allclose(reduced([-1], keepdims=0), function(wide, axis=2), rtol=2e-6)


@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_empty_axes_reduce_all_or_nothing(op_type):
    wide = X.astype(np.float64)
    everything = run_node(op_type, [X, ints()], 18, known=[1])[0]
    np.testing.assert_allclose(everything, REDUCTIONS[op_type](wide, keepdims=True), rtol=2e-6)
    for arrays in ([X], [X, ints()]):
        nothing = run_node(op_type, arrays, 18, known=range(1, len(arrays)), noop_with_empty_axes=1)[0]
        np.testing.assert_allclose(nothing, REDUCTIONS[op_type](wide, axis=()), rtol=2e-6, atol=1e-7)


def test_axis_outside_is_refused():
    with pytest.raises(InvalidModel, match="axis 3; expected -3 to 2"):
        run_node("ReduceSum", [X], 11, axes=[3])


def test_extremes_of_bools():
    b = np.array([[True, False], [False, False]])
    assert run_node("ReduceMax", [b, ints(1)], 20, known=[1], keepdims=0)[0].tolist() == [True, False]
    assert run_node("ReduceMin", [b, ints(0)], 20, known=[1], keepdims=0)[0].tolist() == [False, False]


TIES = np.array([[2, 1, 2], [1, 1, 3]], np.float32)


@pytest.mark.parametrize("opset", [1, 11, 12, 13])
@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
def test_positions_of_extremes(op_type, opset):
    function = {"ArgMax": np.argmax, "ArgMin": np.argmin}[op_type]
    np.testing.assert_array_equal(run_node(op_type, [TIES], opset)[0], function(TIES, 0)[None])
    np.testing.assert_array_equal(run_node(op_type, [TIES], opset, axis=1, keepdims=0)[0], function(TIES, 1))
    if opset >= 12:
        agrees_with_onnxruntime(op_type, [TIES], opset, axis=1, select_last_index=1)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("opset", [11, 14])
def test_running_sums(exclusive, reverse, opset):
    arrays = [X, np.array(-2, np.int64)]
    agrees_with_onnxruntime("CumSum", arrays, opset, known=[1], exclusive=exclusive, reverse=reverse)


def test_running_products():
    (got,) = run_node("CumProd", [X, np.array(1, np.int64)], 26, known=[1], exclusive=1)
    np.testing.assert_allclose(got[:, 2], X[:, 0] * X[:, 1], rtol=1e-6)
    np.testing.assert_array_equal(got[:, 0], np.ones((2, 4)))
