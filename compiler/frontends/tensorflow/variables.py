"""Variables: handles that are read as constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.errors import InvalidModel

if TYPE_CHECKING:
    from compiler.ir import Array


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, by the name of the node that gives its handle: an eager handle, or its value itself."""

    handle: Any
    name: str

    @property
    def what(self) -> str:
        """For diagnoses."""
        return f"the handle of a variable or table ('{self.name}')"

    def read(self, dtype: Any) -> Array:  # noqa: ANN401 - a tf.DType
        """The value that the variable has now. Raises InvalidModel where it has none or is no variable."""
        if isinstance(self.handle, np.ndarray):
            return self.handle
        import tensorflow as tf

        try:
            with tf.init_scope():
                return np.asarray(tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=dtype).numpy())
        except tf.errors.OpError as error:
            raise self._without_value(error) from error

    def shape(self) -> list[int]:
        """The sizes that the variable has now. Raises InvalidModel where it has no value."""
        if isinstance(self.handle, np.ndarray):
            return list(self.handle.shape)
        import tensorflow as tf

        try:
            with tf.init_scope():
                return [int(size) for size in tf.raw_ops.VariableShape(input=self.handle).numpy()]
        except tf.errors.OpError as error:
            raise self._without_value(error) from error

    def _without_value(self, error: Any) -> InvalidModel:  # noqa: ANN401 - a tf.errors.OpError
        return InvalidModel(f"variable '{self.name}' has no value: {str(error.message).splitlines()[0]}")
