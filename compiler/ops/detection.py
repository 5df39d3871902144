"""Selection of boxes. How many are selected is data, so it runs on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import TypeMismatch
from compiler.ir import F32, I64, UNKNOWN, Call, Type, tensor
from compiler.ops.compose import Evaluated, padded
from compiler.ops.registry import FLAG, Attribute, Operand, Variable, register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array

_T: Final = Variable("T", frozenset({F32}))


@register
class NonMaxSuppression(Evaluated):
    """Of each batch entry and class the boxes with the best scores, less those that overlap a better one.

    boxes [B, N, 4], scores [B, C, N] -> [selected, 3] int64: batch entry, class, box; better scores first, of equal
    ones the earlier box. A box is two opposite corners (y, x, y, x), or with ``center`` (x, y, width, height). A box
    goes where its score is not above ``score_threshold`` (omitted: all stay), or where intersection over union with a
    selected one is above ``iou_threshold`` (omitted: 0). At most ``most`` a class are selected (omitted: none).
    Source: ONNX NonMaxSuppression-11. Raises TypeMismatch for shapes that do not fit.
    """

    name: ClassVar[str] = "non_max_suppression"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("boxes", _T),
        Operand("scores", _T),
        Operand("most", Variable("I", frozenset({I64})), optional=True),
        Operand("iou_threshold", _T, optional=True),
        Operand("score_threshold", _T, optional=True),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("center", FLAG, False, "boxes are centre and size, not corners"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        boxes, scores = call.tensor(0), call.tensor(1)
        if boxes.dims is not None and scores.dims is not None:
            fits = len(boxes.dims) == len(scores.dims) == 3 and not (
                isinstance(boxes.dims[2], int) and boxes.dims[2] != 4
            )
            pairs = ((0, 0), (1, 2)) if fits else ()
            for own, other in pairs:
                a, b = boxes.dims[own], scores.dims[other]
                fits = fits and not (isinstance(a, int) and isinstance(b, int) and a != b)
            if not fits:
                msg = f"non_max_suppression: boxes {boxes} and scores {scores}; expected [B, N, 4] and [B, C, N]"
                raise TypeMismatch(msg)
        return (tensor(I64, (UNKNOWN, 3)),)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        boxes, scores, most, overlap, least = padded(operands, 5)
        limit = 0 if most is None else max(int(most.reshape(-1)[0]), 0)
        allowed = np.float32(0) if overlap is None else overlap.reshape(-1)[0]
        found = []
        for batch in range(scores.shape[0]):
            corners = _corners(boxes[batch], center=call.flag("center"))
            for kind in range(scores.shape[1]):
                own = scores[batch, kind]
                order = np.argsort(-own, kind="stable")
                if least is not None:
                    order = order[own[order] > least.reshape(-1)[0]]
                found += [(batch, kind, int(box)) for box in _selected(corners, order, limit, allowed)]
        return (np.asarray(found, np.int64).reshape(-1, 3),)


def _corners(boxes: Array, *, center: bool) -> Array:
    """Each box as its least and greatest corner, [N, 4]."""
    if center:
        half = boxes[:, 2:] / 2
        return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)
    return np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], axis=1)


def _selected(corners: Array, order: Array, limit: int, allowed: Any) -> list[int]:  # noqa: ANN401 - a numpy scalar
    chosen: list[int] = []
    while order.size and len(chosen) < limit:
        best, order = int(order[0]), order[1:]
        chosen.append(best)
        order = order[~(_overlap(corners[best], corners[order]) > allowed)]
    return chosen


def _overlap(box: Array, others: Array) -> Array:
    """Intersection over union, 0 where boxes do not meet or are empty."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    shared = np.where((sides > 0).all(axis=1), sides.prod(axis=1), 0)
    areas = (others[:, 2:] - others[:, :2]).prod(axis=1)
    area = (box[2:] - box[:2]).prod()
    union = area + areas - shared
    real = (shared > 0) & (areas > 0) & (area > 0) & (union > 0)
    return np.where(real, shared / np.where(union > 0, union, 1), 0)
