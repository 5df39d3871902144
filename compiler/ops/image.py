"""Encoded images. Decoding is no arithmetic on tensors: it runs on the host, with Pillow."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from compiler.errors import EvaluationError, TypeMismatch
from compiler.ir import U8, UNKNOWN, Call, Type, tensor
from compiler.ops.compose import Evaluated
from compiler.ops.registry import Attribute, Operand, Variable, choice, register

if TYPE_CHECKING:
    from collections.abc import Sequence


@register
class DecodeImage(Evaluated):
    """The pixels [height, width, channels], uint8, of an encoded image (a vector of its bytes).

    BMP, JPEG, JPEG 2000, PNG, portable pixmaps, TIFF and WebP, as Pillow reads them. Bytes that hold no such image give
    a result of no height and width. Source: ONNX ImageDecoder-20. Raises EvaluationError without Pillow (extra
    ``image``).
    """

    name: ClassVar[str] = "decode_image"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("encoded", Variable("B", frozenset({U8}))),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("format", choice("RGB", "BGR", "Grayscale"), "RGB", "the channels and their order"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """One channel or three. Raises TypeMismatch for another rank than 1."""
        encoded = call.tensor(0)
        if encoded.dims is not None and len(encoded.dims) != 1:
            msg = f"decode_image: operand 'encoded' is {encoded}; expected a vector of bytes"
            raise TypeMismatch(msg)
        return (tensor(U8, (UNKNOWN, UNKNOWN, self._channels(call))),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        try:
            from PIL import Image, UnidentifiedImageError
        except ImportError as error:
            msg = "decode_image: Pillow is not installed; it comes with the extra 'image' (pip install opatlas[image])"
            raise EvaluationError(msg) from error
        layout = call.text("format")
        try:
            with Image.open(io.BytesIO(np.asarray(operands[0]).tobytes())) as image:
                pixels = np.asarray(image.convert("L" if layout == "Grayscale" else "RGB"))
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError):  # what Pillow raises for broken data
            return (np.zeros((0, 0, self._channels(call)), np.uint8),)
        if pixels.ndim == 2:
            pixels = pixels[:, :, np.newaxis]
        return (np.ascontiguousarray(pixels[:, :, ::-1] if layout == "BGR" else pixels),)

    @staticmethod
    def _channels(call: Call) -> int:
        return 1 if call.text("format") == "Grayscale" else 3
