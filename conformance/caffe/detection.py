"""The box layers of the SSD branch from their code (prior_box_layer.cpp, detection_output_layer.cpp), box by box."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
Get = Callable[[str, Any], Any]


def prior_box(get: Get, feature: tuple[int, ...], image: tuple[int, ...]) -> Array:
    """[1, 2, places * priors * 4] for bottoms of these shapes."""
    height, width = feature[2:]
    image_height, image_width = image[2:]
    step_y = get("step", 0) or image_height / height
    step_x = get("step", 0) or image_width / width
    ratios = [1.0]
    for ratio in get("aspect_ratio", ()):
        if not any(abs(ratio - known) < 1e-6 for known in ratios):
            ratios.append(ratio)
            if get("flip", True):
                ratios.append(1 / ratio)
    found: list[float] = []
    for row in range(height):
        for column in range(width):
            x, y = (column + get("offset", 0.5)) * step_x, (row + get("offset", 0.5)) * step_y
            for w, h in _sizes(get("min_size", ()), get("max_size", ()), ratios):
                found += [(x - w / 2) / image_width, (y - h / 2) / image_height]
                found += [(x + w / 2) / image_width, (y + h / 2) / image_height]
    boxes = np.array(found)
    boxes = np.clip(boxes, 0, 1) if get("clip", False) else boxes
    variance = get("variance", (0.1,))
    return np.stack([boxes, np.resize(np.array(variance), boxes.size)])[None]


def _sizes(least: Sequence[float], greatest: Sequence[float], ratios: Sequence[float]) -> list[tuple[float, float]]:
    sizes: list[tuple[float, float]] = []
    for index, small in enumerate(least):
        sizes.append((small, small))
        if greatest:
            sizes.append((math.sqrt(small * greatest[index]),) * 2)
        sizes += [(small * math.sqrt(r), small / math.sqrt(r)) for r in ratios if abs(r - 1) >= 1e-6]
    return sizes


def detection_output(get: Get, location: Array, confidence: Array, priors: Array) -> Array:
    """[1, 1, K, 7] for locations shared by all classes."""
    classes, background = get("num_classes", 1), get("background_label_id", 0)
    boxes, variances = priors[0].reshape(2, -1, 4)
    text = str(get("nms_param", ""))
    overlap = float(_number(text, "nms_threshold", 0.3))
    top_k = int(_number(text, "top_k", -1))
    rows: list[list[float]] = []
    for image in range(location.shape[0]):
        decoded = np.array([
            _decoded(get("code_type", "CORNER"), prior, spread, moved)
            for prior, spread, moved in zip(boxes, variances, location[image].reshape(-1, 4), strict=True)
        ])  # fmt: skip
        scores = confidence[image].reshape(-1, classes)
        kept: list[tuple[float, int, int]] = []
        for label in range(classes):
            if label != background:
                chosen = _suppressed(decoded, scores[:, label], get("confidence_threshold", -math.inf), overlap, top_k)
                kept += [(scores[box, label], label, box) for box in chosen]
        if -1 < get("keep_top_k", -1) < len(kept):
            kept = sorted(kept, key=lambda one: -one[0])[: get("keep_top_k", -1)]
        in_order = sorted(kept, key=lambda one: (one[1], -one[0]))
        rows += [[image, label, score, *decoded[box]] for score, label, box in in_order]
    if not rows:
        rows = [[image, *[-1.0] * 6] for image in range(location.shape[0])]
    return np.array(rows)[None, None]


def _number(text: str, name: str, default: float) -> str | float:
    found = re.search(rf"{name}: (\S+)", text)
    return default if found is None else found[1]


def _decoded(code: str, prior: Array, variance: Array, moved: Array) -> list[float]:
    if code == "CORNER":
        return list(prior + variance * moved)
    width, height = prior[2] - prior[0], prior[3] - prior[1]
    x = variance[0] * moved[0] * width + (prior[0] + prior[2]) / 2
    y = variance[1] * moved[1] * height + (prior[1] + prior[3]) / 2
    w, h = math.exp(variance[2] * moved[2]) * width, math.exp(variance[3] * moved[3]) * height
    return [x - w / 2, y - h / 2, x + w / 2, y + h / 2]


def _suppressed(boxes: Array, scores: Array, least: float, overlap: float, top_k: int) -> list[int]:
    order = sorted((index for index in range(len(scores)) if scores[index] > least), key=lambda index: -scores[index])
    if -1 < top_k < len(order):
        order = order[:top_k]
    chosen: list[int] = []
    for index in order:
        if all(_overlap(boxes[index], boxes[other]) <= overlap for other in chosen):
            chosen.append(index)
    return chosen


def _overlap(one: Array, other: Array) -> float:
    """Intersection over union; 0 where boxes do not meet."""
    if other[0] > one[2] or other[2] < one[0] or other[1] > one[3] or other[3] < one[1]:
        return 0.0
    width, height = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return float(width * height / (areas - width * height))
