"""TensorFlow as an oracle: imported late, one thread, Eigen's kernels alone."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from conformance.errors import Unavailable

_SETTINGS = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # oneDNN's kernels add in an order that depends on the machine.
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "CUDA_VISIBLE_DEVICES": "-1",
}


@cache
def tensorflow() -> Any:  # noqa: ANN401 - TensorFlow is not imported at module level
    """The package. Raises `Unavailable` where it is not installed."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import tensorflow as tf
    except ImportError as error:
        raise Unavailable(f"TensorFlow is not installed ({error}); pip install 'opatlas[tensorflow]'") from error
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    return tf


def first_line(error: BaseException) -> str:
    """What an error says, in one line of at most 200 characters: of TensorFlow's reports the line before the node's."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()] or [""]
    at = next((place for place, line in enumerate(lines) if line.startswith("[[{{node")), 0)
    return lines[max(at - 1, 0)][:200]
