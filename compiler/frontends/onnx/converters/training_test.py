import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from compiler.errors import InvalidModel, UnsupportedOperator
from compiler.frontends.onnx.harness_test import info, model_of, run

DOMAIN = "ai.onnx.preview.training"
RANDOM = np.random.default_rng(8)
COMMON = {"norm_coefficient": 0.25}
OPTIMIZERS = {
    "Adagrad": (1, {**COMMON, "decay_factor": 0.5, "epsilon": 1e-3}),
    "Adam": (2, {**COMMON, "alpha": 0.75, "beta": 0.5, "epsilon": 1e-2, "norm_coefficient_post": 0.125}),
    "Momentum": (1, {**COMMON, "alpha": 0.75, "beta": 0.5, "mode": "standard"}),
    "Nesterov": (1, {**COMMON, "alpha": 0.75, "beta": 0.5, "mode": "nesterov"}),
}


def model_for(operator, states, tensors, attributes, element=onnx.TensorProto.FLOAT):
    names = [f"{kind}{place}" for kind in ("x", "g", *("s", "h")[:states]) for place in range(tensors)]
    outputs = [f"{kind}{place}_new" for kind in ("x", *("s", "h")[:states]) for place in range(tensors)]
    node = onnx.helper.make_node(operator, ["R", "T", *names], outputs, domain=DOMAIN, **attributes)
    inputs = [
        info("R", (), element),
        info("T", (), onnx.TensorProto.INT64),
        *(info(name, (2, 3), element) for name in names),
    ]
    return model_of([node], inputs, [info(name, (2, 3), element) for name in outputs], domains=[DOMAIN])


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("tensors", [1, 2])
@pytest.mark.parametrize("time", [0, 1, 7])
def test_steps_are_those_of_the_reference(name, tensors, time):
    states, attributes = OPTIMIZERS[name]
    model = model_for("Momentum" if "mode" in attributes else name, states, tensors, attributes)
    arrays = [np.abs(RANDOM.normal(size=(2, 3))).astype(np.float32) for _ in range(tensors * (2 + states))]
    given = [np.array(0.1, np.float32), np.array(time), *arrays]
    expected = ReferenceEvaluator(model).run(None, dict(zip([i.name for i in model.graph.input], given, strict=True)))
    for mine, theirs in zip(run(model, *given), expected, strict=True):
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def test_the_first_adam_step_of_zeros_is_the_rate_times_the_sign():
    attributes = {"alpha": 0.9, "beta": 0.999, "epsilon": 0.0}
    model = model_for("Adam", 2, 1, attributes, onnx.TensorProto.DOUBLE)
    zeros, gradient = np.zeros((2, 3)), RANDOM.normal(size=(2, 3))
    moved, *_ = run(model, np.array(0.1), np.array(1), zeros, gradient, zeros, zeros)
    np.testing.assert_allclose(moved, -0.1 * np.sign(gradient), rtol=1e-6)


def test_derivatives_are_refused():
    node = onnx.helper.make_node("Gradient", ["x"], ["dx"], domain=DOMAIN, xs=["x"], y="x")
    with pytest.raises(UnsupportedOperator, match=r"Gradient-1.*derivatives"):
        run(model_of([node], [info("x")], [info("dx")], domains=[DOMAIN]), np.array(1, np.float32))


@pytest.mark.parametrize(("change", "message"), [({"mode": "fast"}, "'mode' is 'fast'"), ({}, "2 and 3 for each")])
def test_what_is_no_step_is_refused(change, message):
    model = model_for("Momentum", 1, 1, {**OPTIMIZERS["Momentum"][1], **change})
    if not change:
        del model.graph.node[0].input[-1], model.graph.node[0].output[-1]
    with pytest.raises(InvalidModel, match=message):
        run(model, *[np.zeros(1)] * 5)
