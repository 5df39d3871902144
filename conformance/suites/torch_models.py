"""Models that are written with torch and exported to ONNX; torch is imported only when one is made."""

from __future__ import annotations

import io
import logging
import warnings
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import onnx
from onnx import ModelProto

from conformance.errors import Unavailable

INPUT_SHAPE = (2, 24, 64)
"""Batch, tokens, width of the transformer encoder's input."""

_HEADS, _FEED_FORWARD, _LAYERS, _SEED = 4, 256, 2, 20


def transformer_encoder() -> ModelProto:
    """Return two pre-norm encoder layers with GELU, random seeded weights, for inputs of `INPUT_SHAPE`.

    Raises `Unavailable` without torch or its ONNX exporter.
    """
    try:
        import torch
    except ImportError as error:
        raise Unavailable(f"torch is not installed ({error}); pip install 'opatlas[torch]'") from error
    torch.manual_seed(_SEED)
    layer = torch.nn.TransformerEncoderLayer(
        INPUT_SHAPE[2], _HEADS, _FEED_FORWARD, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    encoder = torch.nn.TransformerEncoder(
        layer, _LAYERS, norm=torch.nn.LayerNorm(INPUT_SHAPE[2]), enable_nested_tensor=False
    )
    with torch.no_grad():
        for parameter in encoder.parameters():
            # Layers of one encoder start as copies, and norms as the identity.
            parameter.add_(0.05 * torch.randn_like(parameter))
    return _export(encoder.eval(), torch.randn(INPUT_SHAPE))


def _export(module: Any, example: Any) -> ModelProto:  # noqa: ANN401 - torch is not imported at this level
    import torch

    buffer = io.BytesIO()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            program: Any = torch.onnx.export(module, (example,), dynamo=True)
            program.save(buffer)
    except ImportError as error:
        raise Unavailable(f"torch's ONNX exporter is not complete ({error})") from error
    return onnx.load_from_string(buffer.getvalue())
