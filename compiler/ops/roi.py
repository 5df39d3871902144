"""Pooling over regions of interest. Where a region lies is data, so these run on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import EvaluationError, TypeMismatch
from compiler.ir import I64, Call, ElementType, Type, element_of, tensor
from compiler.ops.compose import Evaluated, widened
from compiler.ops.registry import FLAG, FLOAT, NUMBER, Attribute, Operand, Variable, choice, integer, register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array

_T: Final = Variable("T", FLOAT)
_SIZES: Final = (Attribute("height", integer(1), 1, "rows of the result"), Attribute("width", integer(1), 1, "columns"))
_SCALE: Final = Attribute("spatial_scale", NUMBER, 1.0, "multiplies the regions' coordinates")


def _regions(name: str, call: Call, columns: int) -> tuple[Type, ...]:
    x, rois = call.tensor(0), call.tensor(1)
    if x.dims is None or rois.dims is None:
        return (tensor(x.element, None),)
    if x.rank != 4 or rois.rank != 2 or rois.dims[1] not in {columns, *(d for d in rois.dims if isinstance(d, str))}:
        msg = f"{name}: x {x} and rois {rois}; expected [N, C, H, W] and [R, {columns}]"
        raise TypeMismatch(msg)
    return (tensor(x.element, (rois.dims[0], x.dims[1], call.integer("height"), call.integer("width"))),)


def _check_batch(name: str, batch: Array, count: int) -> None:
    if batch.size and (batch.min() < 0 or batch.max() >= count):
        msg = f"{name}: batch indices from {batch.min()} to {batch.max()}; expected them in 0..{count - 1}"
        raise EvaluationError(msg)


@register
class RoiAlign(Evaluated):
    """Interpolated samples of x [N, C, H, W] in each bin of each region [x1, y1, x2, y2], joined -> [R, C, h, w].

    A bin takes ``sampling_ratio`` samples a side (0: as many as its size, rounded up), evenly spread; a sample is
    bilinear, and 0 beyond one element outside. 'avg' means them; 'max' takes the greatest of the weighted corners of
    all samples, as the specification's implementations do. ``half_pixel`` shifts regions by half an element and lets
    them be smaller than one. Source: ONNX RoiAlign-16. Raises EvaluationError for a batch index outside.
    """

    name: ClassVar[str] = "roi_align"
    operands: ClassVar[tuple[Operand, ...]] = (
        Operand("x", _T),
        Operand("rois", _T),
        Operand("batch", Variable("I", frozenset({I64}))),
    )
    attributes: ClassVar[tuple[Attribute, ...]] = (
        *_SIZES,
        _SCALE,
        Attribute("mode", choice("avg", "max"), "avg", "how samples of a bin are joined"),
        Attribute("sampling_ratio", integer(0), 0, "samples a side of a bin"),
        Attribute("half_pixel", FLAG, True, "regions count from the centre of the first element"),
    )

    def infer(self, call: Call) -> tuple[Type, ...]:
        return _regions(self.name, call, 4)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x, rois, batch = operands
        _check_batch(self.name, batch, x.shape[0])
        element = widened(element_of(x.dtype))
        height, width = call.integer("height"), call.integer("width")
        result = np.zeros((rois.shape[0], x.shape[1], height, width), element.dtype)
        corners = rois.astype(element.dtype) * np.asarray(call.number("spatial_scale"), element.dtype)
        corners = corners - np.asarray(0.5 if call.flag("half_pixel") else 0.0, element.dtype)
        for index, (left, top, right, bottom) in enumerate(corners):
            image = x[batch[index]].astype(element.dtype)
            rows = self._samples(call, top, bottom, height, image.shape[1], element)
            columns = self._samples(call, left, right, width, image.shape[2], element)
            result[index] = self._joined(call, image, rows, columns)
        return (result.astype(x.dtype),)

    @staticmethod
    def _samples(call: Call, start: Any, end: Any, bins: int, size: int, element: ElementType) -> Sequence[Array]:  # noqa: ANN401
        """For each bin and sample: lower and upper neighbour, and their weights (0 outside), each [bins, samples]."""
        extent = end - start
        if not call.flag("half_pixel"):
            extent = np.maximum(extent, np.asarray(1, element.dtype))
        each = extent / bins
        samples = call.integer("sampling_ratio") or max(int(np.ceil(each)), 0)
        places = (
            start + np.arange(bins)[:, None] * each + (np.arange(samples) + 0.5)[None, :] * (each / max(samples, 1))
        )
        inside = (places >= -1) & (places <= size)
        places = np.clip(places, 0, size - 1)
        low = places.astype(np.int64)
        upper = (places - low).astype(element.dtype)
        return low, np.minimum(low + 1, size - 1), np.where(inside, 1 - upper, 0), np.where(inside, upper, 0)

    @staticmethod
    def _joined(call: Call, image: Array, rows: Sequence[Array], columns: Sequence[Array]) -> Array:
        corners = [
            image[:, rows[i][:, None, :, None], columns[j][None, :, None, :]]
            * (rows[2 + i][:, None, :, None] * columns[2 + j][None, :, None, :])
            for i in (0, 1)
            for j in (0, 1)
        ]
        if corners[0].shape[-1] * corners[0].shape[-2] == 0:
            return np.zeros(corners[0].shape[:3], image.dtype)
        if call.text("mode") == "max":
            return np.asarray(np.max(corners, axis=0).max(axis=(-1, -2)))
        return np.asarray(np.sum(corners, axis=0, dtype=image.dtype).mean(axis=(-1, -2), dtype=image.dtype))


@register
class MaxRoiPool(Evaluated):
    """Greatest element of x [N, C, H, W] in each bin of each region [batch, x1, y1, x2, y2] -> [R, C, h, w].

    Regions are rounded (halves away from zero) and include their ends; a bin covers floor of its start to ceil of its
    end, cut to x; an empty one gives 0. Source: ONNX MaxRoiPool-1. Raises EvaluationError for a batch index outside.
    """

    name: ClassVar[str] = "max_roi_pool"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", _T), Operand("rois", _T))
    attributes: ClassVar[tuple[Attribute, ...]] = (*_SIZES, _SCALE)

    def infer(self, call: Call) -> tuple[Type, ...]:
        return _regions(self.name, call, 5)

    def compute(self, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        x, rois = operands
        batch = rois[:, 0].astype(np.int64)
        _check_batch(self.name, batch, x.shape[0])
        height, width = call.integer("height"), call.integer("width")
        result = np.zeros((rois.shape[0], x.shape[1], height, width), x.dtype)
        scaled = rois[:, 1:].astype(np.float32) * np.float32(call.number("spatial_scale"))
        corners = (np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))).astype(np.int64)
        for index, (left, top, right, bottom) in enumerate(corners):
            image = x[batch[index]]
            for row, rows in enumerate(_bins(top, bottom, height, image.shape[1])):
                for column, columns in enumerate(_bins(left, right, width, image.shape[2])):
                    part = image[:, rows, columns]
                    if part.size:
                        result[index, :, row, column] = part.max(axis=(1, 2))
        return (result,)


def _bins(start: int, end: int, count: int, size: int) -> list[slice]:
    each = np.float32(max(end - start + 1, 1)) / np.float32(count)
    found = []
    for index in range(count):
        low = int(np.clip(np.floor(np.float32(index) * each) + start, 0, size))
        high = int(np.clip(np.ceil(np.float32(index + 1) * each) + start, 0, size))
        found.append(slice(low, max(low, high)))
    return found
