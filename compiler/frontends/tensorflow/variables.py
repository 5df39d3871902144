"""Variables: handles that are read as constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.errors import InvalidModel
from compiler.ir import Array


@dataclass(frozen=True, slots=True)
class Variable:
    """A captured handle of a variable, by the name of the placeholder that stands for it."""

    handle: Any
    name: str

    @property
    def what(self) -> str:
        """For diagnoses."""
        return f"the handle of a variable or table ('{self.name}')"

    def read(self, dtype: Any) -> Array:  # noqa: ANN401 - a tf.DType
        """The value that the variable has now. Raises InvalidModel where it has none or is no variable."""
        import tensorflow as tf

        try:
            with tf.init_scope():
                return np.asarray(tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=dtype).numpy())
        except tf.errors.OpError as error:
            reason = str(error.message).splitlines()[0]
            raise InvalidModel(f"variable '{self.name}' has no value: {reason}") from error

    def shape(self) -> list[int]:
        """The sizes that the variable has now. Raises InvalidModel where it has no value."""
        import tensorflow as tf

        try:
            with tf.init_scope():
                return [int(size) for size in tf.raw_ops.VariableShape(input=self.handle).numpy()]
        except tf.errors.OpError as error:
            reason = str(error.message).splitlines()[0]
            raise InvalidModel(f"variable '{self.name}' has no value: {reason}") from error
