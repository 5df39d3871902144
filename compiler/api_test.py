"""Compiling and running through the public face: results, costs, stages of refusals, inputs that do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from compiler.api import Options, compile
from compiler.errors import InvalidInput, InvalidModel, InvalidTarget, OpatlasError, TimingNeedsData, ValueNeeded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def _model(
    nodes: Sequence[onnx.NodeProto], inputs: dict[str, tuple[int, list[Any]]], outputs: dict[str, tuple[int, list[Any]]]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()],
        [helper.make_tensor_value_info(name, *spec) for name, spec in outputs.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _matmul() -> onnx.ModelProto:
    return _model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": (TensorProto.FLOAT, ["N", 8]), "w": (TensorProto.FLOAT, [8, 4])},
        {"y": (TensorProto.FLOAT, ["N", 4])},
    )


def _sum_over_axes() -> onnx.ModelProto:
    return _model(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
        {"x": (TensorProto.FLOAT, ["N", "M"]), "axes": (TensorProto.INT64, [1])},
        {"y": (TensorProto.FLOAT, ["K"])},
    )


def test_symbolic_model_runs_for_each_size_it_is_given() -> None:
    compiled = compile(_matmul())
    w = np.arange(32, dtype=np.float32).reshape(8, 4)
    for rows in (1, 3, 3, 0):
        x = np.ones((rows, 8), np.float32)
        (y,) = compiled.run([x, w])
        np.testing.assert_array_equal(y, x @ w)


@pytest.mark.parametrize("size", [3, 6])
def test_definitions_are_evaluated_for_the_sizes_of_a_run(size: int) -> None:
    """A softmax's decomposition needs no sizes, a group norm's does: it is symbolic in the model."""
    nodes = [helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=size // 3, epsilon=0.0)]
    vectors = {name: (TensorProto.FLOAT, ["C"]) for name in ("s", "b")}
    model = _model(nodes, {"x": (TensorProto.FLOAT, [1, "C", "W"]), **vectors}, {"y": (TensorProto.FLOAT, None)})
    compiled = compile(model)
    x = np.arange(size * 2, dtype=np.float32).reshape(1, size, 2) ** 2
    inputs = [x, np.ones(size, np.float32), np.zeros(size, np.float32)]
    groups = x.reshape(size // 3, 6).astype(np.float64)
    expected = (groups - groups.mean(1, keepdims=True)) / groups.std(1, keepdims=True)
    (y,) = compiled.evaluate(inputs)
    np.testing.assert_allclose(y, expected.reshape(x.shape), rtol=1e-5)


def test_definitions_are_evaluated_with_the_values_that_decide() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (y,) = compile(_sum_over_axes()).evaluate({"x": x, "axes": np.array([-1])})
    np.testing.assert_array_equal(y, [3, 12])


def test_inputs_by_name_give_the_same_as_in_order() -> None:
    compiled = compile(_matmul())
    x, w = np.eye(8, dtype=np.float32), np.ones((8, 4), np.float32)
    np.testing.assert_array_equal(compiled.run({"w": w, "x": x})[0], compiled.run([x, w])[0])


def test_costs_hold_their_bounds_and_add_up() -> None:
    result = compile(_matmul()).simulate([np.ones((64, 8), np.float32), np.ones((8, 4), np.float32)])
    assert result.placement == "accelerator"
    assert result.compulsory_bytes == 4 * (64 * 8 + 8 * 4 + 64 * 4)
    assert result.traffic_bytes >= result.compulsory_bytes
    assert result.cycles >= 64 * 8 * 4 / (32 * 32)
    assert sum(result.energy_by_component.values()) == pytest.approx(result.energy_pj, rel=1e-9)
    assert set(result.stage_ms) == {"import", "verify", "optimize", "lower", "simulate"}


def test_timing_alone_gives_the_cycles_of_a_run() -> None:
    compiled = compile(_matmul())
    run = compiled.simulate([np.ones((16, 8), np.float32), np.ones((8, 4), np.float32)])
    alone = compiled.estimate({"N": 16})
    assert alone.outputs is None
    assert alone.cycles == run.cycles


def test_timing_without_sizes_says_which_are_missing() -> None:
    with pytest.raises(TimingNeedsData, match="size"):
        compile(_matmul()).estimate()


def test_values_that_decide_are_taken_from_the_inputs_of_each_run() -> None:
    compiled = compile(_sum_over_axes())
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(compiled.run([x, np.array([axis])])[0], x.sum(axis))
    with pytest.raises(ValueNeeded, match="axes"):
        compiled.estimate({"N": 2, "M": 3})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([np.ones((2, 8), np.float32)], "1 inputs given; expected 2"),
        ([np.ones((2, 7), np.float32), np.ones((8, 4), np.float32)], "input 'x'"),
        ([np.ones((2, 8), np.float64), np.ones((8, 4), np.float32)], "input 'x' is tensor<2x8xf64>"),
        ({"x": np.ones((2, 8), np.float32)}, r"\['w'\] are missing"),
        ({"x": 0, "w": 0, "z": 0}, r"\['z'\] are unknown"),
        ([object(), np.ones((8, 4), np.float32)], "input 'x' is of type object"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_by_name(inputs: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        compile(_matmul()).simulate(inputs)


def test_one_symbol_has_one_size() -> None:
    model = _model(
        [helper.make_node("Add", ["x", "y"], ["z"])],
        {"x": (TensorProto.FLOAT, ["N"]), "y": (TensorProto.FLOAT, ["N"])},
        {"z": (TensorProto.FLOAT, ["N"])},
    )
    with pytest.raises(InvalidInput, match="'N'"):
        compile(model).simulate([np.ones(2, np.float32), np.ones(1, np.float32)])


@pytest.mark.parametrize(
    ("build", "kind", "stage"),
    [
        (lambda path: compile(path / "missing.onnx"), InvalidModel, "import"),
        (lambda path: compile(_matmul(), "no-such-npu"), InvalidTarget, "import"),
        (lambda path: compile(_matmul()).run([0, 0]), InvalidInput, "verify"),
    ],
)
def test_refusals_name_the_stage_that_they_came_from(
    build: Any, kind: type[OpatlasError], stage: str, tmp_path: Path
) -> None:
    with pytest.raises(kind) as caught:
        build(tmp_path)
    assert caught.value.stage == stage


def test_dumps_are_written_where_asked(tmp_path: Path) -> None:
    compiled = compile(_sum_over_axes(), options=Options(dump_dir=tmp_path / "dump", verify_each=True))
    compiled.run([np.ones((2, 3), np.float32), np.array([0])])
    assert "reduce_sum" in (tmp_path / "dump" / "00-input.mlir").read_text()


@pytest.mark.parametrize("options", [Options(fuse=False), Options(overlap=False)])
def test_options_change_costs_and_not_results(options: Options) -> None:
    inputs = [np.ones((64, 8), np.float32), np.ones((8, 4), np.float32)]
    plain, other = compile(_matmul()).simulate(inputs), compile(_matmul(), options=options).simulate(inputs)
    np.testing.assert_array_equal(plain.outputs, other.outputs)
    assert other.cycles >= plain.cycles
