"""The bundled compiler: framework model -> graph -> passes -> program -> simulated accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from compiler.api import CompiledModel, Options
    from compiler.targets.schema import Target

__all__ = ["compile"]


def compile(
    obj: Any,  # noqa: ANN401 - whatever a framework calls a model
    inputs: Sequence[Any] | None = None,
    target: str | Path | Target | None = None,
    *,
    options: Options | None = None,
) -> CompiledModel:
    """Compile a model of any framework for a target; without one for the default target.

    ``obj`` is a path (.onnx, .prototxt with the .caffemodel of its name beside it, .pt2, .pb, .keras, the folder of a
    SavedModel), a ModelProto, an nn.Module, Keras layer or tf.function with example ``inputs``, an ExportedProgram, a
    concrete function, a Keras model, a GraphDef, or a pair of a prototxt and a caffemodel, as paths or as content.
    The result's ``run(list of arrays)`` gives the outputs flattened in the framework's own order. Raises an
    OpatlasError whose ``stage`` is import or verify.
    """
    from compiler import api  # the stages of the compiler are loaded where something is compiled
    from compiler.targets.loader import DEFAULT_TARGET

    return api.compile(obj, DEFAULT_TARGET if target is None else target, inputs=inputs, options=options)
