"""From a case of TensorFlow to its program: the function to trace or to run, and its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any

from numpy.typing import NDArray

from generators import draws
from generators.tensorflow_cases import TensorflowCase
from generators.tensorflow_source import tensorflow_source

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class TensorflowProgram:
    """A `tf.function` of fixed input types, and the arrays that it takes."""

    function: Any
    arguments: list[Array]

    def traced(self) -> Any:  # noqa: ANN401 - TensorFlow is not imported at this level
        """The concrete function. Errors of TensorFlow pass through."""
        return self.function.get_concrete_function()

    def outputs(self) -> list[Array]:
        """What TensorFlow computes, operator by operator, flattened. Errors of TensorFlow pass through."""
        import tensorflow as tf

        return _arrays(self.function.python_function(*map(tf.constant, self.arguments)))

    def traced_outputs(self) -> list[Array]:
        """What TensorFlow makes of the traced graph: for operators that it runs in graphs alone."""
        import tensorflow as tf

        return _arrays(self.traced()(*map(tf.constant, self.arguments)))


def _arrays(found: Any) -> list[Array]:  # noqa: ANN401 - what a function returned
    import numpy as np
    import tensorflow as tf

    return [np.asarray(value.numpy()) for value in map(tf.convert_to_tensor, tf.nest.flatten(found))]


def build_tensorflow(
    case: TensorflowCase, *, wide: bool = False, transform: Callable[[Array], Array] | None = None
) -> TensorflowProgram:
    """The program of a case, by executing its source.

    ``wide``: in float64, on the same values; ``transform`` is applied to all drawn floats. Raises ImportError without
    TensorFlow.
    """
    sources = tensorflow_source(case, wide=wide)
    scope = dict(_scope())
    exec(_compiled(sources.inputs, case.id), scope)  # noqa: S102 - our own templates
    values = [
        value if transform is None or not draws.is_float(value.dtype) else transform(value)
        for value in scope["make_inputs"]()
    ]
    scope["VALUES"] = values
    exec(_compiled(sources.model, case.id), scope)  # noqa: S102 - our own templates
    return TensorflowProgram(scope["model"], [values[place] for place in sources.arguments])


def _compiled(source: str, name: str) -> CodeType:
    return compile(source, f"<{name}>", "exec", dont_inherit=True)


@cache
def _scope() -> dict[str, Any]:
    import ml_dtypes
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.framework import dtypes

    functions = {name: value for name, value in vars(draws).items() if inspect.isfunction(value)}
    return {**functions, "np": np, "ml_dtypes": ml_dtypes, "tf": tf, "dtypes": dtypes}
