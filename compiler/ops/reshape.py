"""The same elements in the same order under other dims, and the exchange of space and channels."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import TypeMismatch
from compiler.ir import UNKNOWN, Dim, Type, tensor
from compiler.ops.movement import X, contiguous, copy, integer_list, result_tensor, value_operand
from compiler.ops.registry import Attribute, Operand, Operator, choice, integer, register
from compiler.ops.shapes import known_integers, normalize_axes, resolve_reshape, vector_length
from compiler.ops.work import Access, Index, nests, parallel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compiler.ir import Call, RunRegion
    from compiler.ops.work import Work


class Reshaping(Operator):
    """Base of the operators that only give the same elements, in the same order, other dims.

    They are aliases; ``work``, where the new dims split and join the old ones, copies.
    """

    alias: ClassVar[bool] = True

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """A copy with a loop a common factor; None where a dim of one shape straddles dims of the other."""
        x, result = call.tensor(0), result_tensor(results)
        if x.size == 0:
            return ()
        factors = common_factors(x.shape, result.shape)
        if factors is None:
            return None
        read = Access(0, grouped_indices(x.shape, factors))
        write = Access(0, grouped_indices(result.shape, factors))
        return nests(copy(read, x.element, parallel(factors), write))


def common_factors(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...] | None:
    """Sizes whose consecutive products are the dims of both shapes (6x4 and 2x3x4: 2, 3, 4), else None.

    Both shapes have as many elements, at least one. Dims of size 1 take part in no product.
    """
    ends = sorted(set(itertools.accumulate(a, int.__mul__)) | set(itertools.accumulate(b, int.__mul__)))
    factors, before = [], 1
    for end in ends:
        if end == 1:
            continue
        if end % before:
            return None
        factors.append(end // before)
        before = end
    return tuple(factors)


def grouped_indices(shape: Sequence[int], factors: Sequence[int]) -> tuple[Index, ...]:
    """The index of each dim of ``shape`` in terms of loops over ``factors``, outer ones first."""
    dims, position = [], 0
    for size in shape:
        taken: list[int] = []
        while math.prod(factors[loop] for loop in taken) < size:
            taken.append(position)
            position += 1
        terms = [(loop, math.prod(factors[later] for later in taken if later > loop)) for loop in taken]
        dims.append(Index(tuple(terms)))
    return tuple(dims)


@register
class Reshape(Reshaping):
    """The elements of x, in row-major order, with the sizes that ``shape`` holds; one -1 stands for what is left.

    Sizes only: zeros that mean "keep" are the frontend's affair. Raises TypeMismatch where the counts differ.
    """

    name: ClassVar[str] = "reshape"
    operands: ClassVar[tuple[Operand, ...]] = (X, value_operand("shape"))

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The sizes where the value is known, else as many unknown dims as it has entries."""
        x, sizes = call.tensor(0), known_integers(call, 1)
        if sizes is not None:
            return (tensor(x.element, resolve_reshape(self.name, x.dims, sizes)),)
        length = vector_length(call, 1)
        return (tensor(x.element, None if length is None else (UNKNOWN,) * length),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Numpy's reshape."""
        x = np.asarray(operands[0])
        sizes = [int(size) for size in resolve_reshape(self.name, x.shape, integer_list(operands[1]))]
        return (x.reshape(sizes),)


@register
class Squeeze(Reshaping):
    """x without the dims of size 1 that ``axes`` names, without all of them where it is omitted."""

    name: ClassVar[str] = "squeeze"
    operands: ClassVar[tuple[Operand, ...]] = (X, value_operand("axes", optional=True))

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Raises TypeMismatch for an axis of another size; the rank is unknown where sizes or axes are."""
        x, axes = call.tensor(0), known_integers(call, 1)
        if x.dims is None:
            return (tensor(x.element, None),)
        if axes is None and call.has(1):
            length = vector_length(call, 1)
            return (tensor(x.element, None if length is None else (UNKNOWN,) * (x.rank - length)),)
        if axes is None:
            known = all(isinstance(dim, int) for dim in x.dims)
            return (tensor(x.element, [dim for dim in x.dims if dim != 1] if known else None),)
        return (tensor(x.element, self._squeezed(x.dims, axes)),)

    def _squeezed(self, dims: Sequence[Dim], axes: Iterable[int]) -> tuple[Dim, ...]:
        taken = normalize_axes(self.name, axes, len(dims))
        for axis in taken:
            if isinstance(dims[axis], int) and dims[axis] != 1:
                msg = f"squeeze: dim {axis} of {list(dims)} has size {dims[axis]}; expected 1"
                raise TypeMismatch(msg)
        return tuple(dim for axis, dim in enumerate(dims) if axis not in taken)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Numpy's reshape."""
        x = np.asarray(operands[0])
        if len(operands) < 2 or operands[1] is None:
            return (x.squeeze(),)
        return (x.reshape([int(dim) for dim in self._squeezed(x.shape, integer_list(operands[1]))]),)


@register
class Unsqueeze(Reshaping):
    """x with dims of size 1 put in at ``axes``, which count in the result."""

    name: ClassVar[str] = "unsqueeze"
    operands: ClassVar[tuple[Operand, ...]] = (X, value_operand("axes"))

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Raises InvalidAttribute for an axis outside the result's rank or given twice."""
        x, axes = call.tensor(0), known_integers(call, 1)
        length = vector_length(call, 1)
        if x.dims is None or length is None:
            return (tensor(x.element, None),)
        if axes is None:
            return (tensor(x.element, (UNKNOWN,) * (x.rank + length)),)
        return (tensor(x.element, self._unsqueezed(x.dims, axes)),)

    def _unsqueezed(self, dims: Sequence[Dim], axes: Sequence[int]) -> tuple[Dim, ...]:
        rank = len(dims) + len(axes)
        added = normalize_axes(self.name, axes, rank)
        rest = iter(dims)
        return tuple(1 if axis in added else next(rest) for axis in range(rank))

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Numpy's reshape."""
        x = np.asarray(operands[0])
        return (x.reshape([int(dim) for dim in self._unsqueezed(x.shape, integer_list(operands[1]))]),)


BLOCK_SIZE: Final = Attribute("block_size", integer(1), doc="elements a side of the square block")


@register
class DepthToSpace(Operator):
    """Channels laid out as blocks of space: [N, C, H, W] -> [N, C / b^2, H b, W b] (ONNX DepthToSpace-13).

    Mode DCR: channel (row b + column) C/b^2 + c holds the block's element (row, column) of new channel c; CRD:
    channel c b^2 + row b + column does. Raises TypeMismatch for another rank or a C that b^2 does not divide.
    """

    name: ClassVar[str] = "depth_to_space"
    operands: ClassVar[tuple[Operand, ...]] = (X,)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        BLOCK_SIZE,
        Attribute("mode", choice("DCR", "CRD"), "DCR", "the order of block and new channel in the channels"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Sizes divided and multiplied."""
        x, block = call.tensor(0), call.integer("block_size")
        if x.dims is None:
            return (tensor(x.element, (UNKNOWN,) * 4),)
        n, c, h, w = _image_dims(self.name, x.dims)
        return (tensor(x.element, (n, _divided(self.name, c, block * block), _times(h, block), _times(w, block))),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Reshape, transpose, reshape, as the specification writes it."""
        x, b = np.asarray(operands[0]), call.integer("block_size")
        n, c, h, w = x.shape
        new = c // (b * b)
        if call.text("mode") == "DCR":
            moved = x.reshape(n, b, b, new, h, w).transpose(0, 3, 4, 1, 5, 2)
        else:
            moved = x.reshape(n, new, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
        return (contiguous(moved).reshape(n, new, h * b, w * b),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Loops n, new channel, h, row, w, column."""
        x, b = call.tensor(0), call.integer("block_size")
        n, c, _, _ = result_tensor(results).shape
        _, _, h, w = x.shape
        weights = {"DCR": (1, b * c, c), "CRD": (b * b, b, 1)}[call.text("mode")]
        channel = Index(tuple(zip((1, 3, 5), weights, strict=True)))
        read = Access(0, (Index(((0, 1),)), channel, Index(((2, 1),)), Index(((4, 1),))))
        write = Access(0, (Index(((0, 1),)), Index(((1, 1),)), Index(((2, b), (3, 1))), Index(((4, b), (5, 1)))))
        return nests(copy(read, x.element, parallel((n, c, h, b, w, b)), write))


@register
class SpaceToDepth(Operator):
    """Blocks of space laid out as channels: [N, C, H, W] -> [N, C b^2, H / b, W / b] (ONNX SpaceToDepth-13).

    The block's element (row, column) of channel c goes to channel (row b + column) C + c. Raises TypeMismatch for
    another rank or sizes that b does not divide.
    """

    name: ClassVar[str] = "space_to_depth"
    operands: ClassVar[tuple[Operand, ...]] = (X,)
    attributes: ClassVar[tuple[Attribute, ...]] = (BLOCK_SIZE,)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """Sizes multiplied and divided."""
        x, block = call.tensor(0), call.integer("block_size")
        if x.dims is None:
            return (tensor(x.element, (UNKNOWN,) * 4),)
        n, c, h, w = _image_dims(self.name, x.dims)
        spatial = (_divided(self.name, size, block) for size in (h, w))
        return (tensor(x.element, (n, _times(c, block * block), *spatial)),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Reshape, transpose, reshape, as the specification writes it."""
        x, b = np.asarray(operands[0]), call.integer("block_size")
        n, c, h, w = x.shape
        moved = x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
        return (contiguous(moved).reshape(n, c * b * b, h // b, w // b),)

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:
        """Loops n, channel, h, row, w, column."""
        x, b = call.tensor(0), call.integer("block_size")
        n, c, _, _ = x.shape
        _, _, h, w = result_tensor(results).shape
        read = Access(0, (Index(((0, 1),)), Index(((1, 1),)), Index(((2, b), (3, 1))), Index(((4, b), (5, 1)))))
        channel = Index(((1, 1), (3, b * c), (5, c)))
        write = Access(0, (Index(((0, 1),)), channel, Index(((2, 1),)), Index(((4, 1),))))
        return nests(copy(read, x.element, parallel((n, c, h, b, w, b)), write))


def _image_dims(name: str, dims: Sequence[Dim]) -> Sequence[Dim]:
    if len(dims) != 4:
        msg = f"{name}: operand 'x' has dims {list(dims)}; expected four, [N, C, H, W]"
        raise TypeMismatch(msg)
    return dims


def _times(dim: Dim, count: int) -> Dim:
    if isinstance(dim, int):
        return dim * count
    return dim if count == 1 else UNKNOWN


def _divided(name: str, dim: Dim, count: int) -> Dim:
    if not isinstance(dim, int):
        return dim if count == 1 else UNKNOWN
    if dim % count:
        msg = f"{name}: size {dim} is not a multiple of {count}"
        raise TypeMismatch(msg)
    return dim // count
