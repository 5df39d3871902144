"""Constants: immutable numpy data with a content hash, or only a type and a seed (abstract)."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.errors import AbstractConstant
from compiler.ir.types import TensorType, type_of

if TYPE_CHECKING:
    from collections.abc import Hashable

Array = np.ndarray[Any, Any]

_DIGEST_BYTES: Final = 16


class Constant:
    """The data of a tensor, never copied: a read-only view of the array it was made from.

    An abstract constant has a type and a seed and no data; asking for its data raises AbstractConstant. Two constants
    are equal when type and content are; the content hash is computed once, when first needed.
    """

    __slots__ = ("_array", "_digest", "seed", "type")

    def __init__(self, array: Array | None, type_: TensorType, seed: int = 0) -> None:
        self._array = array
        self._digest: bytes | None = None
        self.type = type_
        self.seed = seed

    @classmethod
    def of(cls, array: Array) -> Constant:
        """The constant with this data; the array is viewed, not copied, and the view is read-only.

        Only numpy's fixed-width strings are copied: they become an array of Python strings.
        """
        if array.dtype.kind in "US":
            array = array.astype(np.object_)
        view = np.asarray(array).view()
        view.flags.writeable = False
        return cls(view, type_of(array))

    @classmethod
    def abstract(cls, type_: TensorType, seed: int = 0) -> Constant:
        """A constant of this static type whose data is not there: enough for compiling and timing."""
        return cls(None, type_, seed)

    @property
    def is_abstract(self) -> bool:
        """Whether there is only a type and a seed."""
        return self._array is None

    @property
    def array(self) -> Array:
        """The data, read-only. Raises AbstractConstant."""
        if self._array is None:
            msg = f"the data of an abstract constant of type {self.type} is needed; only its type and seed are known"
            raise AbstractConstant(msg)
        return self._array

    @property
    def digest(self) -> bytes:
        """Hash of the content (of the seed, for an abstract one); the type is not part of it."""
        if self._digest is None:
            self._digest = self._compute_digest()
        return self._digest

    def _compute_digest(self) -> bytes:
        if self._array is None:
            return blake2b(f"abstract {self.seed}".encode(), digest_size=_DIGEST_BYTES).digest()
        if self._array.dtype.hasobject:
            return blake2b(repr(self._array.tolist()).encode(), digest_size=_DIGEST_BYTES).digest()
        data = np.ascontiguousarray(self._array)
        return blake2b(data.reshape(-1).view(np.uint8).data, digest_size=_DIGEST_BYTES).digest()

    @property
    def key(self) -> Hashable:
        """What two equal constants share."""
        return (self.type, self.is_abstract, self.digest)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Constant) or self.type is not other.type:
            return False
        return self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        state = f"abstract, seed {self.seed}" if self.is_abstract else self.digest.hex()
        return f"Constant({self.type}, {state})"
