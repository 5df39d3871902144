import ml_dtypes
import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir import F32, Call, tensor
from compiler.ops.harness_test import run, run_decomposed
from compiler.ops.recurrent import Lstm

RNG = np.random.default_rng(23)
WAYS = pytest.mark.parametrize("way", [run, run_decomposed])
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
T, B, IN, H = 4, 3, 2, 5


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def by_onnxruntime(name, operands, **attributes):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    inputs = [f"i{k}" if operand is not None else "" for k, operand in enumerate(operands)]
    outputs = ["y", "h", "c"][: 3 if name == "lstm" else 2]
    node = helper.make_node(name.upper(), inputs, outputs, hidden_size=H, **attributes)
    given = {f"i{k}": operand for k, operand in enumerate(operands) if operand is not None}
    types = [
        helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for key, value in given.items()
    ]
    results = [helper.make_tensor_value_info(key, TensorProto.FLOAT, None) for key in outputs]
    model = helper.make_model(
        helper.make_graph([node], "g", types, results), opset_imports=[helper.make_opsetid("", 14)], ir_version=8
    )
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, given)


def operands_of(name, directions, *, bias=True, lengths=None, initial=False, peepholes=False):
    gates = GATES[name]
    found = [
        normal(T, B, IN),
        normal(directions, gates * H, IN),
        normal(directions, gates * H, H) * np.float32(0.5),
        normal(directions, 2 * gates * H) if bias else None,
        None if lengths is None else np.array(lengths, np.int32),
        normal(directions, B, H) if initial else None,
    ]
    if name == "lstm":
        found += [normal(directions, B, H) if initial else None, normal(directions, 3 * H) if peepholes else None]
    return found


def agree(found, expected, tolerance=2e-5):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@WAYS
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("name", GATES)
def test_directions_with_everything_follow_onnxruntime(way, name, direction):
    directions = 2 if direction == "bidirectional" else 1
    operands = operands_of(name, directions, lengths=[4, 1, 3], initial=True, peepholes=True)
    agree(way(name, *operands, direction=direction), by_onnxruntime(name, operands, direction=direction))


@WAYS
@pytest.mark.parametrize("name", GATES)
def test_omitted_operands_follow_onnxruntime(way, name):
    operands = operands_of(name, 1, bias=False)[:3]
    agree(way(name, *operands), by_onnxruntime(name, operands))


@WAYS
@pytest.mark.parametrize("bias", [False, True])
def test_gru_linear_before_reset(way, bias):
    operands = operands_of("gru", 1, bias=bias, initial=True)
    found = way("gru", *operands, linear_before_reset=True)
    agree(found, by_onnxruntime("gru", operands, linear_before_reset=1))


@WAYS
def test_lstm_couples_input_and_forget(way):
    operands = operands_of("lstm", 1, initial=True)
    found = way("lstm", *operands, input_forget=True)
    # f = 1 - i, by the definition, in float64.
    x, w, r, b, _, h, c, _ = [None if one is None else one.astype(np.float64) for one in operands]
    h, c = h[0], c[0]
    for t in range(T):
        gates = x[t] @ w[0].T + h @ r[0].T + b[0][: 4 * H] + b[0][4 * H :]
        i, o, _, cell = np.split(gates, 4, -1)
        i, o = 1 / (1 + np.exp(-i)), 1 / (1 + np.exp(-o))
        c = (1 - i) * c + i * np.tanh(cell)
        h = o * np.tanh(c)
    agree(found[1:], [h[None], c[None]])


@WAYS
@pytest.mark.parametrize("name", GATES)
def test_clip_bounds_what_activations_see(way, name):
    operands = operands_of(name, 1, initial=True)
    operands[0] = operands[0] * np.float32(5)
    agree(way(name, *operands, clip=0.7), by_onnxruntime(name, operands, clip=0.7))


ACTIVATED = [
    (["Relu"], [], []),
    (["LeakyRelu"], [0.2], []),
    (["ThresholdedRelu"], [0.3], []),
    (["ScaledTanh"], [0.7], [0.6]),
    (["HardSigmoid"], [0.3], [0.4]),
    (["Elu"], [1.3], []),
    (["Softsign"], [], []),
    (["Softplus"], [], []),
    (["Affine"], [0.4], [0.1]),
]


@WAYS
@pytest.mark.parametrize(("names", "alpha", "beta"), ACTIVATED)
def test_activations_follow_onnxruntime(way, names, alpha, beta):
    operands = operands_of("rnn", 1)
    expected = by_onnxruntime(
        "rnn",
        operands,
        activations=names,
        **({"activation_alpha": alpha} if alpha else {}),
        **({"activation_beta": beta} if beta else {}),
    )
    found = way("rnn", *operands, activations=tuple(names), activation_alpha=tuple(alpha), activation_beta=tuple(beta))
    agree(found, expected, 5e-5)


@WAYS
def test_parameters_go_to_the_activations_that_take_them(way):
    operands = operands_of("lstm", 2, initial=True)
    names = ["HardSigmoid", "Tanh", "LeakyRelu", "Sigmoid", "Elu", "Tanh"]
    expected = by_onnxruntime(
        "lstm",
        operands,
        direction="bidirectional",
        activations=names,
        activation_alpha=[0.3, 0.1, 0.8],
        activation_beta=[0.4],
    )
    found = way(
        "lstm",
        *operands,
        direction="bidirectional",
        activations=tuple(names),
        activation_alpha=(0.3, 0.1, 0.8),
        activation_beta=(0.4,),
    )
    agree(found, expected)


@WAYS
@pytest.mark.parametrize("name", GATES)
def test_layout_1_exchanges_batch_with_time_and_directions(way, name):
    operands = operands_of(name, 2, lengths=[2, 4, 0], initial=True)
    plain = run(name, *operands, direction="bidirectional")
    swapped = list(operands)
    for index in (0, 5, *((6,) if name == "lstm" else ())):
        swapped[index] = np.ascontiguousarray(operands[index].swapaxes(0, 1))
    found = way(name, *swapped, direction="bidirectional", layout=1)
    agree(found, [plain[0].transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in plain[1:])], 1e-6)
    assert not np.any(found[0][2])
    np.testing.assert_allclose(found[1][2], operands[5][:, 2])


@WAYS
def test_lstm_is_torchs_in_float64(way):
    module = torch.nn.LSTM(IN, H, dtype=torch.float64)
    x = RNG.standard_normal((T, B, IN))
    with torch.no_grad():
        expected, (h, c) = module(torch.tensor(x))

    def gates(parameter):
        i, f, g, o = np.split(parameter.detach().numpy(), 4)
        return np.concatenate([i, o, f, g])[None]

    bias = np.concatenate([gates(module.bias_ih_l0), gates(module.bias_hh_l0)], axis=1)
    found = way("lstm", x, gates(module.weight_ih_l0), gates(module.weight_hh_l0), bias)
    agree(found, [expected.numpy()[:, None], h.numpy(), c.numpy()], 1e-12)


@WAYS
def test_bfloat16_keeps_its_state_in_float32(way):
    operands = [None if one is None else one.astype(ml_dtypes.bfloat16) for one in operands_of("gru", 1)]
    wide = [None if one is None else one.astype(np.float32) for one in operands]
    for one, other in zip(way("gru", *operands), run("gru", *wide), strict=True):
        assert one.dtype == ml_dtypes.bfloat16
        np.testing.assert_allclose(one.astype(np.float32), other, rtol=2**-8, atol=1e-6)


def test_wrong_weights_and_activations_are_named():
    operands = operands_of("lstm", 1)
    with pytest.raises(TypeMismatch, match=r"expected dims \[2, 20, 2\]"):
        run("lstm", *operands, direction="bidirectional")
    with pytest.raises(InvalidAttribute, match="2 activations; expected 3"):
        run("lstm", *operands, activations=("tanh", "tanh"))
    with pytest.raises(InvalidAttribute, match="names out of relu"):
        run("lstm", *operands, activations=("tanh", "tanh", "swish"))


def test_symbolic_steps_and_batch_are_inferred():
    types = [tensor(F32, ("T", "B", 2)), tensor(F32, (1, 20, 2)), tensor(F32, (1, 20, 5))]
    y, h, c = Lstm.instance().infer(Call(types, Lstm.instance().complete({})))
    assert (y, h, c) == (tensor(F32, ("T", 1, "B", 5)), tensor(F32, (1, "B", 5)), tensor(F32, (1, "B", 5)))
