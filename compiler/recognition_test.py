"""Tests of the recognition of composites, through the ONNX frontend; expected values are those of the pieces."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx.parser
import pytest

from compiler import api
from compiler.ops.interpreter import interpret
from compiler.ops.registry import Composite
from compiler.passes.manager import run_passes
from compiler.pipeline import canonical_passes

HEADER = '<ir_version: 9, opset_import: ["": 20]>'


def compiled(text):
    model = onnx.parser.parse_model(f"{HEADER} g {text}")
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return api.compile(model)


def composites(model, inputs):
    graph = model.canonical(inputs)
    return Counter(op.name for op in graph.walk() if isinstance(op.definition, Composite)), graph


def softmax_text(keep=1, axes="{1}", shown=""):
    outputs = f"float y{', float e' if shown else ''}"
    return f"""(float[3, 3] x) => ({outputs}) {{
        axes = Constant<value_ints: ints = [{axes.strip("{}")}]>()
        m = ReduceMax<keepdims: int = {keep}>(x, axes)
        s = Sub(x, m)
        e = Exp(s)
        t = ReduceSum<keepdims: int = {keep}>(e, axes)
        y = Div(e, t)
    }}"""


X = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)


def test_the_pieces_of_a_softmax_are_one():
    found, graph = composites(compiled(softmax_text()), [X])
    assert found == {"softmax": 1}
    wide = np.exp(X.astype(np.float64))
    np.testing.assert_allclose(interpret(graph, [X])[0], wide / wide.sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("text", [softmax_text(keep=0), softmax_text(axes="{0, 1}"), softmax_text(shown="e")])
def test_what_is_no_softmax_stays(text):
    model = compiled(text)
    found, graph = composites(model, [X])
    assert not found
    for ours, plain in zip(interpret(graph, [X]), interpret(model.graph, [X]), strict=True):
        np.testing.assert_array_equal(ours, plain)


def attention_text(mask, hidden="-30000.0"):
    return f"""(float[1, 2, 3, 4] q, float[1, 2, 3, 4] k, float[1, 2, 3, 4] v, bool[3, 3] seen) => (float y) {{
        kt = Transpose<perm: ints = [0, 1, 3, 2]>(k)
        raw = MatMul(q, kt)
        half = Constant<value_float: float = 0.5>()
        scores = Mul(raw, half)
        low = Constant<value_float: float = {hidden}>()
        {mask}
        w = Softmax<axis: int = -1>(masked)
        y = MatMul(w, v)
    }}"""


def heads(seed):
    return np.random.default_rng(seed).standard_normal((1, 2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("hidden", ["-30000.0", "-inf"])
def test_a_row_that_sees_no_key_keeps_what_its_pieces_give(hidden):
    low = "Constant<value_float: float = -30000.0>()"
    text = attention_text("masked = Where(seen, scores, low)")
    if hidden == "-inf":
        text = text.replace(
            f"low = {low}", "zero = Constant<value_float: float = 0.0>()\n none = Log(zero)\n low = Identity(none)"
        )
    seen = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]], bool)
    inputs = [heads(1), heads(2), heads(3), seen]
    found, graph = composites(compiled(text), inputs)
    assert found["attention"] == 1
    q, k, v = (array.astype(np.float64) for array in inputs[:3])
    scores = np.where(seen, q @ k.swapaxes(2, 3) * 0.5, float(hidden))
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        expected = powers / powers.sum(-1, keepdims=True) @ v
    (y,) = interpret(graph, inputs)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    assert np.isnan(y[0, 0, 1]).all() == (hidden == "-inf")
    np.testing.assert_allclose(compiled(text).run(inputs)[0], expected, rtol=1e-5, atol=1e-6)


def test_a_constant_causal_mask_is_known_as_one():
    text = attention_text("masked = Where(causal, scores, low)").replace(
        "(float y) {", "(float y) <bool[3, 3] causal = {1, 0, 0, 1, 1, 0, 1, 1, 1}> {"
    )
    _, graph = composites(compiled(text), [heads(1), heads(2), heads(3), np.ones((3, 3), bool)])
    (op,) = [op for op in graph.walk() if op.name == "attention"]
    assert op.call().flag("causal")
    assert len([operand for operand in op.operands if operand is not None]) == 3


def test_a_mask_that_hides_little_is_none():
    text = attention_text("masked = Where(seen, scores, low)", hidden="-1.0")
    found, _ = composites(compiled(text), [heads(1), heads(2), heads(3), np.ones((3, 3), bool)])
    assert found == {"softmax": 1}


def test_one_number_added_to_all_scores_is_no_mask():
    model = compiled(attention_text("masked = Add(scores, half)"))
    inputs = [heads(1), heads(2), heads(3), np.ones((3, 3), bool)]
    q, k, v = (array.astype(np.float64) for array in inputs[:3])
    powers = np.exp(q @ k.swapaxes(2, 3) * 0.5)
    expected = powers / powers.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(model.run(inputs)[0], expected, rtol=1e-5, atol=1e-6)


def test_decomposed_and_recognized_agree():
    text = attention_text("masked = Where(seen, scores, low)")
    model = onnx.parser.parse_model(f"{HEADER} g {text}")
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    inputs = [heads(1), heads(2), heads(3), np.tril(np.ones((3, 3), bool))]
    fused = api.compile(model).run(inputs)
    plain = api.compile(model, options=api.Options(fuse=False)).run(inputs)
    np.testing.assert_allclose(fused[0], plain[0], rtol=1e-5, atol=1e-6)


def test_without_fusion_nothing_is_recognized():
    graph = compiled(softmax_text()).canonical([X])
    plain = compiled(softmax_text()).graph
    run_passes(plain, canonical_passes(recognize=False))
    assert "softmax" in {op.name for op in graph.walk()}
    assert "softmax" not in {op.name for op in plain.walk()}
