"""Tests of the block language and of what it is rendered to."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from generators.blocks import BlockCase, block_source, build_block, expand_blocks, make_program, render_block
from generators.blocks.cases import phrases, spellings
from generators.blocks.language import Evaluator
from generators.blocks.program import Program, Var
from opsets.block_manifest import load_blocks
from opsets.errors import ManifestError


def run(body, **names):
    program = Program()
    found = Evaluator(program, "float32", phrases(), {}).run(body, names)
    return program, found


def test_there_are_blocks_and_cases_enough_in_every_framework():
    cases = list(expand_blocks())
    assert len({case.block for case in cases if not case.block.startswith("like_")}) >= 70
    assert sum(case.block.startswith("like_") for case in cases if case.framework == "onnx") >= 30
    counts = Counter(case.framework for case in cases)
    assert min(counts[name] for name in ("onnx", "torch", "tensorflow")) >= 500
    assert len({case.id for case in cases}) == len(cases) >= 1500


def test_every_block_renders_in_every_framework():
    for block in load_blocks():
        for framework in block.entry.frameworks:
            config = next(iter(block.entry.configs))
            for spelled in spellings(block.name, framework)[:1]:
                case = BlockCase(framework, block.name, config, "float16", spelled)
                compile(render_block(case), case.id, "exec")


def test_numbers_are_computed_and_tensors_become_steps():
    program, found = run("y = x * (D // 3) + 1\nreturn y", x=Var((2, 6), "float32", "x"), D=6)
    assert [step.word for step in program.steps] == ["mul", "add"]
    assert program.steps[0].operands[1] == 2
    assert (found.shape, found.name) == ((2, 6), "y")


def test_loops_and_conditions_over_numbers_are_unrolled():
    program, _ = run(
        "y = x\nfor i in range(3):\n    if i > 0:\n        y = y + i\nreturn y", x=Var((2,), "float32", "x")
    )
    assert [step.operands[1] for step in program.steps] == [1, 2]


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("return x @ x", "inner sizes differ"),
        ("return z", "name 'z' is unknown"),
        ("return nothing(x)", "word 'nothing' is unknown"),
        ("return reshape(x, 5)", "same number of elements"),
        ("return x +", "invalid syntax"),
        ("y = x", "without 'return'"),
        ("import os", "no statement of the language"),
        ("return transpose(x, 0, 0)", "each axis once"),
        ("return x + int64(x)", "cast them"),
    ],
)
def test_mistakes_of_a_body_are_named(body, part):
    with pytest.raises(ManifestError, match=part):
        run(body, x=Var((2, 3), "float32", "x"))


def test_a_block_gives_the_values_of_its_formula():
    case = next(case for case in expand_blocks() if case.id == "onnx-rms_norm_block-tiny-float32-rms_norm.divide")
    built = build_block(case)
    onnx.checker.check_model(built.model, full_check=True)
    (x,) = built.inputs
    (scale,) = (onnx.numpy_helper.to_array(t) for t in built.model.graph.initializer if t.name == "scale")
    (y,) = ReferenceEvaluator(built.model).run(None, {"x": x})
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5) * scale
    np.testing.assert_allclose(y, expected, rtol=1e-5)


def test_a_case_of_a_real_size_has_weights_without_data():
    case = next(case for case in expand_blocks() if case.real and case.block == "swiglu_mlp")
    built = build_block(case)
    assert {value.name for value in built.model.graph.input} == {"x", "wg", "wu", "wd"}
    assert built.model.ByteSize() < 10_000


def test_every_framework_gets_the_same_weights_and_inputs():
    onnx_case, torch_case = (
        next(case for case in expand_blocks() if (case.framework, case.block) == (name, "swiglu_mlp"))
        for name in ("onnx", "torch")
    )
    ends = [source.partition("def make_model" if "Graph:" in source else "class Block")[0]
            for source in map(block_source, (onnx_case, torch_case))]  # fmt: skip
    assert ends[0].partition("class Graph")[0].strip() == ends[1].strip()


def test_a_wide_program_has_no_narrow_float():
    case = next(case for case in expand_blocks() if case.block == "rms_norm_block" and case.dtype == "float16")
    found = {var.dtype for step in make_program(case, wide=True).steps for var in step.results}
    assert found == {"float64"}


@pytest.mark.parametrize("block", ["llama_decoder_layer", "unet_residual", "dense_moe", "top_p_sampling"])
def test_torch_computes_what_onnx_computes(block):
    torch = pytest.importorskip("torch", reason="the block is rendered for torch too")
    built = {
        name: build_block(next(c for c in expand_blocks() if (c.framework, c.block) == (name, block)))
        for name in ("onnx", "torch")
    }
    names = [value.name for value in built["onnx"].model.graph.input]
    ours = ReferenceEvaluator(built["onnx"].model).run(None, dict(zip(names, built["onnx"].inputs, strict=True)))
    with torch.no_grad():
        found = built["torch"].model(*map(torch.from_numpy, built["torch"].inputs))
    for y, z in zip(ours, found if isinstance(found, tuple) else (found,), strict=True):
        np.testing.assert_allclose(y, z.numpy(), rtol=1e-4, atol=1e-5)
