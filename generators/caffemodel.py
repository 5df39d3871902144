"""Writes a caffemodel from arrays, without Caffe and without protobuf: its source goes into reproducers as it is.

The wire format is that of https://protobuf.dev/programming-guides/encoding; the field numbers are Caffe's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def field(number: int, data: bytes) -> bytes:
    """A field that has a length: text, packed numbers, a message."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def blob(array: Array, *, old: bool) -> bytes:
    """A BlobProto; ``old``: with four dims, missing ones in front being 1."""
    if old and array.ndim <= 4:
        dims = (1,) * (4 - array.ndim) + array.shape
        shape = b"".join(varint(number << 3) + varint(size) for number, size in enumerate(dims, start=1))
    else:
        shape = field(7, field(1, b"".join(map(varint, array.shape))))
    return shape + field(5, array.astype("<f4").tobytes())


def caffemodel(weights: Mapping[str, Sequence[Array]], *, old: bool = False) -> bytes:
    """A NetParameter with layers of these names; ``old``: of the first format, whose fields have other numbers."""
    layers = []
    for name, arrays in weights.items():
        parts = [field(4 if old else 1, name.encode())]
        parts += [field(6 if old else 7, blob(array, old=old)) for array in arrays]
        layers.append(field(2 if old else 100, b"".join(parts)))
    return b"".join(layers)


def spread(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Normal weights whose sums over what one output sees stay near 1 (He et al. 2015); vectors are near 0."""
    scale = np.sqrt(2 / max(int(np.prod(shape[1:])), 1)) if len(shape) > 1 else 0.1
    return (rng.standard_normal(shape) * scale).astype(np.float32)
