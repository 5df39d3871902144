"""What TensorFlow itself computes, to compare with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.frontends.tensorflow.door import loaded_session, program_of
from compiler.frontends.tensorflow.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.ir import Array


def run_native(model: Any, inputs: Mapping[str, Array]) -> list[Array]:  # noqa: ANN401 - what program_of takes
    """TensorFlow's outputs for inputs by name, in the order of the program's. Raises InvalidModel as program_of."""
    import numpy as np
    import tensorflow as tf

    if isinstance(model, (str, Path)) and Path(model).is_dir():
        with loaded_session(Path(model)) as (session, program):
            return _fetched(session, program, inputs)
    program = program_of(model)
    if program.owner is None:
        with tf.compat.v1.Session(graph=program.graph) as session:
            return _fetched(session, program, inputs)
    function = program.owner[-1]
    given = [tf.constant(inputs[name]) for name, _ in program.inputs]
    return [np.asarray(value.numpy()) for value in tf.nest.flatten(function(*given)) if value is not None]


def _fetched(session: Any, program: Program, inputs: Mapping[str, Array]) -> list[Array]:  # noqa: ANN401
    feeds = {value: inputs[name] for name, value in program.inputs}
    found: list[Array] = session.run([value for _, value in program.outputs], feeds)
    return found
