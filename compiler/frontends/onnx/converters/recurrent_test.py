import numpy as np
import pytest

from compiler.errors import InvalidModel
from compiler.frontends.onnx.harness_test import agrees_with_onnxruntime, run_node

RANDOM = np.random.default_rng(13)
STEPS, BATCH, INPUT, HIDDEN = 3, 2, 4, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def operands(op_type, directions, extra=()):
    gates = GATES[op_type]

    def floats(*shape):
        return (RANDOM.normal(size=shape) / 2).astype(np.float32)

    every = {
        "b": floats(directions, 2 * gates * HIDDEN),
        "lengths": np.array([3, 1], np.int32),
        "h": floats(directions, BATCH, HIDDEN),
        "c": floats(directions, BATCH, HIDDEN),
        "p": floats(directions, 3 * HIDDEN),
    }
    names = ["b", "lengths", "h", "c", "p"] if op_type == "LSTM" else ["b", "lengths", "h"]
    given = [every[name] if name in extra else None for name in names]
    while given and given[-1] is None:
        given.pop()
    weights = [floats(directions, gates * HIDDEN, size) for size in (INPUT, HIDDEN)]
    return [floats(STEPS, BATCH, INPUT), *weights, *given]


@pytest.mark.parametrize("opset", [7, 14, 22])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op_type", GATES)
def test_cells_in_every_direction(op_type, direction, opset):
    directions = 2 if direction == "bidirectional" else 1
    outputs = 3 if op_type == "LSTM" else 2
    for extra in ((), ("b", "h"), ("b", "lengths", "h", "c", "p")):
        arrays = operands(op_type, directions, extra)
        agrees_with_onnxruntime(op_type, arrays, opset, outputs, direction=direction, hidden_size=HIDDEN)


@pytest.mark.parametrize("opset", [3, 7, 14])
@pytest.mark.parametrize("late", [0, 1])
def test_reset_gate_of_gru(opset, late):
    arrays = operands("GRU", 1, ("b",))
    newest = run_node("GRU", arrays, 22, 2, hidden_size=HIDDEN, linear_before_reset=late)
    for got, expected in zip(
        run_node("GRU", arrays, opset, 2, hidden_size=HIDDEN, linear_before_reset=late), newest, strict=True
    ):
        np.testing.assert_array_equal(got, expected)
    agrees_with_onnxruntime("GRU", arrays, 14, 2, hidden_size=HIDDEN, linear_before_reset=late)


@pytest.mark.parametrize("op_type", GATES)
def test_first_version_is_the_same_cell(op_type):
    arrays = operands(op_type, 1, ("b", "h", "c"))
    first = run_node(op_type, arrays, 1, 2, hidden_size=HIDDEN, output_sequence=1)
    second = run_node(op_type, arrays, 7, 2, hidden_size=HIDDEN)
    for mine, theirs in zip(first, second, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_activations_and_clip():
    arrays = operands("LSTM", 1, ("b",))
    functions = ["HardSigmoid", "Softsign", "Affine"]
    attributes = {"activation_alpha": [0.3, 0.5], "activation_beta": [0.4, 0.1], "clip": 0.6}
    agrees_with_onnxruntime("LSTM", arrays, 14, 3, hidden_size=HIDDEN, activations=functions, **attributes)
    agrees_with_onnxruntime("RNN", operands("RNN", 1, ("b",)), 14, 2, hidden_size=HIDDEN, activations=["Relu"])
    agrees_with_onnxruntime("LSTM", operands("LSTM", 1, ("b", "p")), 14, 3, hidden_size=HIDDEN, input_forget=1)


@pytest.mark.parametrize("op_type", GATES)
def test_batch_first_layout(op_type):
    arrays = operands(op_type, 1, ("b", "h"))
    y, h = run_node(op_type, arrays, 14, 2, hidden_size=HIDDEN)
    state = [array if array is None or array.ndim != 3 else array.swapaxes(0, 1) for array in arrays[3:]]
    turned = [arrays[0].swapaxes(0, 1).copy(), *arrays[1:3], *state]
    y_turned, h_turned = run_node(op_type, turned, 14, 2, hidden_size=HIDDEN, layout=1)
    np.testing.assert_array_equal(y_turned, y.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(h_turned, h.swapaxes(0, 1))


def test_wrong_attributes_are_refused():
    with pytest.raises(InvalidModel, match="'direction' is 'sideways'"):
        run_node("RNN", operands("RNN", 1), 14, direction="sideways")
    with pytest.raises(InvalidModel, match="'hidden_size' is 7, and the recurrent weight has 5"):
        run_node("RNN", operands("RNN", 1), 14, hidden_size=7)
