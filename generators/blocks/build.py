"""A block's case as standalone source, and as the framework's own model with its inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import jinja2
import numpy as np

from generators.blocks.cases import FRAMEWORKS, BlockCase, make_program, number_of, phrases, sizes_of
from generators.blocks.language import Evaluator
from generators.blocks.onnx import OPSET, proto_name
from generators.blocks.program import Program, Var
from generators.blocks.rendering import statements
from generators.render import draws_source, ir_version
from opsets.block_manifest import TensorEntry, find_block
from opsets.elements import numpy_source

_TORCH_RUN: Final = """    tensors = [to_torch(np.ascontiguousarray(value)) for value in inputs]
    print(torch.export.export(model, tuple(tensors)).graph)
    with torch.no_grad():
        print("->", model(*tensors))"""
_TF_RUN: Final = """    print("->", model(*[tf.constant(value) for value in inputs]))"""
_ONNX_RUN: Final = """    print(onnx.printer.to_text(model))
    session = ReferenceEvaluator(model)
    print("->", session.run(None, dict(zip([one.name for one in model.graph.input], inputs, strict=True))))"""


@dataclass(frozen=True, slots=True)
class _Face:
    """What a framework's standalone file has around the block."""

    needs: str
    imports: str
    run: str


_FACES: Final[Mapping[str, _Face]] = {
    "onnx": _Face(
        "onnx",
        "import onnx\nfrom onnx import TensorProto, helper, numpy_helper\n"
        "from onnx.reference import ReferenceEvaluator",
        _ONNX_RUN,
    ),
    "torch": _Face("torch", "import torch\nimport torch.nn.functional as F", _TORCH_RUN),
    "tensorflow": _Face("tensorflow", "import tensorflow as tf", _TF_RUN),
}


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parents[1] / "templates" / "blocks"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Python source, not HTML
    )


def block_source(case: BlockCase, *, wide: bool = False) -> str:
    """Source of the block: its model, its weights and its inputs. ``wide``: every float type is float64."""
    program = make_program(case, wide=wide)
    framework = FRAMEWORKS[case.framework]
    lines, texts = statements(program, framework)
    rows = zip(texts, program.outputs, strict=True)
    outputs = [(f"y{i}", text, var.dtype, list(var.shape)) for i, (text, var) in enumerate(rows)]
    inputs = {**program.inputs, **(program.weights if case.real else {})}
    named = program.inputs if case.framework != "onnx" else {**program.inputs, **program.weights}
    model = (
        _environment()
        .get_template(f"{case.framework}.jinja")
        .render(
            block=find_block(case.block),
            names=list(named),
            inputs=list(inputs.items()),
            lines=lines,
            outputs=outputs,
            opset=OPSET,
            proto=proto_name,
            ir_version=ir_version(OPSET),
            uses_top_k=any(step.word == "top_k" for step in program.live_steps()),
        )
    )
    return model if case.real else _data_source(case) + model


def _data_source(case: BlockCase) -> str:
    """Functions that draw weights and inputs, in the case's own type: the same for every framework."""
    block, program = find_block(case.block), make_program(case)
    names = sizes_of(case)
    evaluator = Evaluator(Program(), case.dtype, phrases(), {})

    def code(entries: Mapping[str, TensorEntry], found: Mapping[str, Var], *, weight: bool) -> list[tuple[str, str]]:
        return [(name, _draw(evaluator, entry, found[name], names, weight)) for name, entry in entries.items()]

    return (
        _environment()
        .get_template("data.jinja")
        .render(
            weight_code=code(block.entry.weights, program.weights, weight=True),
            input_code=code(block.entry.inputs, program.inputs, weight=False),
        )
    )


def _draw(evaluator: Evaluator, entry: TensorEntry, var: Var, names: dict[str, Any], weight: bool) -> str:
    shape, dtype = var.shape, numpy_source(var.dtype)
    if entry.type == "bool":
        return f"mask(rng, {shape}, {dtype})"
    if entry.range is not None or entry.type != "T":
        low, high = (number_of(evaluator, bound, names) for bound in entry.range or (0, 2))
        kind = "uniform" if entry.type == "T" else "integers"
        return f"{kind}(rng, {shape}, {dtype}, {low}, {high})"
    if entry.scale is not None:
        return f"gaussian(rng, {shape}, {dtype}, {entry.scale})"
    if not weight:
        return f"gaussian(rng, {shape}, {dtype}, 1.0)"
    if len(shape) < 2:
        return f"uniform(rng, {shape}, {dtype}, 0.5, 1.5)"
    fan = math.prod(shape[1:]) if len(shape) > 3 else shape[-2]
    return f"gaussian(rng, {shape}, {dtype}, {round(1 / math.sqrt(fan), 4)})"


def render_block(case: BlockCase) -> str:
    """Source that anyone can run with numpy, ml_dtypes and the framework."""
    code = block_source(case)
    face = _FACES[case.framework]
    return (
        _environment()
        .get_template("reproducer.jinja")
        .render(
            block=find_block(case.block),
            case=case,
            code=code,
            draws="" if case.real else draws_source(code),
            seed=f"0x{case.seed:016x}",
            needs=face.needs,
            imports=face.imports,
            run=face.run,
        )
    )


@dataclass(frozen=True, slots=True)
class BuiltBlock:
    """A framework's own model (ModelProto, torch module, tf.Module) and its inputs as numpy arrays."""

    model: Any
    inputs: list[Any]


def build_block(case: BlockCase, *, wide: bool = False) -> BuiltBlock:
    """The model and its inputs, by executing the case's source. ``wide``: the same values and steps in float64."""
    scope = _scope(case.framework)
    exec(compile(block_source(case, wide=wide), f"<{case.id}>", "exec", dont_inherit=True), scope)  # noqa: S102 - our own templates
    if case.real:
        return BuiltBlock(scope["make_model"]({}), [])
    rng = np.random.default_rng(case.seed)
    weights, inputs = scope["make_weights"](rng), scope["make_inputs"](rng)
    if wide:
        weights = {name: _wide(array) for name, array in weights.items()}
        inputs = [_wide(array) for array in inputs]
    return BuiltBlock(scope["make_model"](weights), inputs)


def _wide(array: Any) -> Any:  # noqa: ANN401 - an array of any type
    return array.astype(np.float64) if "float" in array.dtype.name else array


def _scope(framework: str) -> dict[str, Any]:
    import inspect

    import ml_dtypes

    from generators import draws

    scope: dict[str, Any] = {name: value for name, value in vars(draws).items() if inspect.isfunction(value)}
    scope |= {"np": np, "ml_dtypes": ml_dtypes}
    exec(_FACES[framework].imports, scope)  # noqa: S102 - a constant of this file
    return scope
