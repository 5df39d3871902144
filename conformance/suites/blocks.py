"""Blocks of today's models: one definition each in every framework, recognized, fused and in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

from onnx import ModelProto

from conformance.case import CaseInfo, Composites, LoadedCase
from conformance.comparison import Output
from conformance.errors import Unavailable
from conformance.native import Native
from conformance.suites import torch_programs
from generators.blocks import BlockCase, build_block, expand_blocks, render_block
from generators.blocks.build import BuiltBlock
from generators.blocks.onnx import OPSET
from opsets.block_manifest import find_block, load_blocks

TOLERANCE = "whole_graph"


class Blocks:
    """Cases by framework, block, configuration, element type and spelling."""

    name: ClassVar[str] = "blocks"
    time_limit: ClassVar[float] = 120.0

    def prepare(self, say: Callable[[str], None]) -> None:
        del say

    def operators(self) -> set[str]:
        """Return the names of all blocks."""
        return {block.name for block in load_blocks()}

    def cases(self) -> Iterator[CaseInfo]:
        for case in expand_blocks():
            yield CaseInfo(
                id=f"{self.name}/{case.id}",
                suite=self.name,
                operator=case.block,
                framework=case.framework,
                domain=self.name,
                opset=OPSET if case.framework == "onnx" else 0,
                dtype=case.dtype,
                attributes={"config": case.config, "family": find_block(case.block).family, **dict(case.spelled)},
                data_class="none" if case.real else "random",
                input_mode="timing" if case.real else "static",
                source=case,
            )

    def load(self, info: CaseInfo) -> LoadedCase:
        case = _case_of(info)
        entry = find_block(case.block).entry
        composites = Composites(entry.becomes, frozenset(entry.never))
        if case.framework == "onnx":
            built = build_block(case)
            return LoadedCase(built.model, built.inputs, TOLERANCE, composites=composites, timing_only=case.real)
        native, inputs = _NATIVES[case.framework](case)
        return LoadedCase(None, inputs, TOLERANCE, native=native, composites=composites)

    def reproducer(self, info: CaseInfo) -> str | None:
        return render_block(_case_of(info))


def _torch(case: BlockCase) -> tuple[Native, Sequence[Output]]:
    """Raises `Unavailable` without torch, and where torch itself refuses the block."""
    torch_programs.require_torch()
    built = build_block(case)
    tensors = [torch_programs.to_tensor(value) for value in built.inputs]
    program = torch_programs.exported(built.model, tensors)
    eager = partial(_eager, case, built, tensors)
    return Native(program, eager, partial(torch_programs.to_onnx, program)), built.inputs


def _eager(case: BlockCase, built: BuiltBlock, tensors: Sequence[Any], wide: bool) -> Sequence[Output]:
    """What eager torch gives; wide: of the block rendered in float64, casts inside it too."""
    if not wide:
        return torch_programs.eager_outputs(built.model, tensors)
    other = build_block(case, wide=True)
    return torch_programs.eager_outputs(other.model, [torch_programs.to_tensor(value) for value in other.inputs])


def _tensorflow(case: BlockCase) -> tuple[Native, Sequence[Output]]:
    """Raises `Unavailable` without TensorFlow, and where TensorFlow itself refuses the block."""
    try:
        import tensorflow as tf
    except ImportError as error:
        raise Unavailable(f"TensorFlow is not installed ({error}); pip install 'opatlas[tensorflow]'") from error
    built = build_block(case)
    try:
        specs = [tf.TensorSpec(value.shape, value.dtype) for value in built.inputs]
        program = built.model.__call__.get_concrete_function(*specs)
        _tensorflow_outputs(built)
    except Exception as error:
        raise Unavailable(f"TensorFlow refuses it: {type(error).__name__}: {str(error).strip()[:200]}") from error

    def eager(wide: bool) -> Sequence[Output]:
        return _tensorflow_outputs(build_block(case, wide=True) if wide else built)

    return Native(program, eager, partial(_tensorflow_onnx, program)), built.inputs


def _tensorflow_outputs(built: BuiltBlock) -> list[Output]:
    import tensorflow as tf

    found = built.model(*map(tf.constant, built.inputs))
    return [value.numpy() for value in (found if isinstance(found, list | tuple) else (found,))]


def _tensorflow_onnx(program: Any) -> ModelProto:  # noqa: ANN401 - a concrete function
    from compiler.errors import OpatlasError
    from compiler.exporters.onnx import export_model
    from compiler.frontends.tensorflow import import_tensorflow, program_of

    try:
        return export_model(import_tensorflow(program_of(program)))
    except OpatlasError as error:
        raise Unavailable(f"the graph has no ONNX form: {error.message}") from error


_NATIVES: dict[str, Callable[[BlockCase], tuple[Native, Sequence[Output]]]] = {
    "torch": _torch,
    "tensorflow": _tensorflow,
}


def _case_of(info: CaseInfo) -> BlockCase:
    if not isinstance(info.source, BlockCase):
        raise TypeError(f"{info.id}: found a source of {type(info.source).__name__}, expected a BlockCase")
    return info.source


def create() -> Blocks:
    """Return the suite. Raises `ManifestError` for a manifest that breaks its schema."""
    load_blocks()
    return Blocks()
