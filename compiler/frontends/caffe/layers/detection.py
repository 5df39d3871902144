"""The layers of the SSD branch that make boxes and choose among them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.frontends.caffe.reader import PB
from compiler.frontends.caffe.site import Site, converts
from compiler.ir import Value
from compiler.ops.compare import Eq
from compiler.ops.detection import NonMaxSuppression
from compiler.ops.elementwise import Add, Div, Exp, Min, Mul, Sub
from compiler.ops.indexing import Gather, GatherElements, GatherNd
from compiler.ops.movement import BroadcastTo, Concat, Transpose
from compiler.ops.reshape import Unsqueeze
from compiler.ops.selection import Compress, TopK
from compiler.ops.shape import ShapeOf

if TYPE_CHECKING:
    from collections.abc import Sequence

_SAME_RATIO = 1e-6
"""Aspect ratios closer than this count as one."""


@converts("PriorBox", least=2, greatest=2)
def prior_box(site: Site) -> Value:
    """[1, 2, H * W * priors * 4]: the boxes of each place as (xmin, ymin, xmax, ymax) over the image, and variances."""
    found = site.parameters("prior_box_param")
    least, greatest = [float(size) for size in found.min_size], [float(size) for size in found.max_size]
    if not least or (greatest and len(greatest) != len(least)):
        site.invalid(f"{len(least)} of min_size, {len(greatest)} of max_size; expected as many, at least one")
    given = [*least, *greatest, *found.aspect_ratio]
    if not all(0 < value < math.inf for value in given) or not (len(site.dims()) == len(site.dims(1)) == 4):
        site.invalid(f"sizes and ratios {given}; expected positive ones, and bottoms of 4 dims")
    height, width = site.dims()[2:4]
    image = _pair(found.img_size, found.img_h, found.img_w) or site.dims(1)[2:4]
    steps = _pair(found.step, found.step_h, found.step_w) or (image[0] / height, image[1] / width)
    sizes = _box_sizes(least, greatest, _ratios(found))
    ys, xs = np.meshgrid(
        (np.arange(height) + found.offset) * steps[0], (np.arange(width) + found.offset) * steps[1], indexing="ij"
    )
    centres = np.stack([xs, ys], axis=-1)[:, :, None, :]
    halves = np.asarray(sizes, np.float64)[None, None] / 2
    boxes = np.concatenate([centres - halves, centres + halves], axis=-1) / np.array(
        [image[1], image[0], image[1], image[0]], np.float64
    )
    if found.clip:
        boxes = boxes.clip(0, 1)
    variances = list(found.variance) or [0.1]
    if len(variances) not in {1, 4}:
        site.invalid(f"{len(variances)} of variance; expected 1 or 4")
    spread = np.resize(np.asarray(variances), boxes.size)
    return site.b.constant(np.stack([boxes.ravel(), spread])[None].astype(np.float32))


def _pair(both: float, vertical: float, horizontal: float) -> tuple[float, float] | None:
    if vertical and horizontal:
        return vertical, horizontal
    return (both, both) if both else None


def _ratios(found: Any) -> list[float]:  # noqa: ANN401 - a protobuf message
    """1, then those given and, with ``flip``, their inverses; none twice."""
    ratios = [1.0]
    for ratio in found.aspect_ratio:
        if all(abs(ratio - known) >= _SAME_RATIO for known in ratios):
            ratios += [ratio, 1 / ratio] if found.flip else [ratio]
    return ratios


def _box_sizes(least: Sequence[float], greatest: Sequence[float], ratios: Sequence[float]) -> list[tuple[float, float]]:
    """(width, height) in pixels, in Caffe's order: for each size the square, the square of the mean, other ratios."""
    sizes: list[tuple[float, float]] = []
    for index, small in enumerate(least):
        sizes.append((small, small))
        if greatest:
            mean = float(np.sqrt(small * greatest[index]))
            sizes.append((mean, mean))
        sizes += [(small * float(np.sqrt(r)), small / float(np.sqrt(r))) for r in ratios if abs(r - 1) >= _SAME_RATIO]
    return sizes


@converts("DetectionOutput", least=3, greatest=3)
def detection_output(site: Site) -> Value:
    """[1, 1, K, 7]: image, label, score and box of what is left after suppression, by label and score.

    Bottoms are locations [N, priors * 4], confidences [N, priors * classes] and priors [1, 2, priors * 4]. Without any
    detection K is N, and all but the images' numbers is -1.
    """
    found = site.parameters("detection_output_param")
    if found.nms_param.eta != 1:
        site.refuse("an adaptive threshold has no conversion", "eta")
    classes, priors = int(found.num_classes), site.dims(2)[-1] // 4
    batch = site.dims()[0]
    sets = 1 if found.share_location else classes
    sizes = (int(np.prod(site.dims(index)[1:], dtype=np.int64)) for index in (0, 1))
    if classes < 1 or tuple(sizes) != (priors * sets * 4, priors * classes):
        site.invalid(
            f"bottoms {[list(site.dims(index)) for index in range(3)]} do not fit {classes} classes of {priors} priors"
        )
    labels = [label for label in range(classes) if label != found.background_label_id]
    located = site.reshape(site.inputs[0], (batch, priors, sets, 4))
    boxes = site.b(Transpose, _decoded(site, found, located, priors), permutation=(0, 2, 1, 3))
    if found.share_location:
        boxes = site.b(BroadcastTo, boxes, site.integers(batch, len(labels), priors, 4))
    else:
        boxes = site.b(Gather, boxes, site.integers(*labels), axis=1)
    scores = site.reshape(site.inputs[1], (batch, priors, classes))
    scores = site.b(Gather, site.b(Transpose, scores, permutation=(0, 2, 1)), site.integers(*labels), axis=1)
    rows = [_of_image(site, found, boxes, scores, image, labels) for image in range(batch)]
    whole = rows[0] if batch == 1 else site.b(Concat, *rows, axis=0)
    none = site.b(Eq, site.b(ShapeOf, whole, start=0, end=1), site.integers(0))
    empty = np.full((batch, 7), -1, np.float32)
    empty[:, 0] = np.arange(batch)
    fallback = site.b(Compress, site.b.constant(empty), site.b(BroadcastTo, none, site.integers(batch)), axis=0)
    return site.b(Unsqueeze, site.b(Concat, whole, fallback, axis=0), site.integers(0, 1))


def _decoded(site: Site, found: Any, located: Value, priors: int) -> Value:  # noqa: ANN401
    """Boxes [N, priors, sets, 4] from what the network says of each prior."""
    both = site.reshape(site.inputs[2], (2, priors, 1, 4))
    prior, variance = (site.reshape(site.cut(both, 0, part, part + 1), (priors, 1, 4)) for part in range(2))
    moved = located if found.variance_encoded_in_target else site.b(Mul, located, variance)
    kinds = PB.PriorBoxParameter
    if found.code_type == kinds.CORNER:
        return site.b(Add, prior, moved)
    low, high = site.cut(prior, 2, 0, 2), site.cut(prior, 2, 2, 4)
    size = site.b(Sub, high, low)
    first, second = site.cut(moved, 3, 0, 2), site.cut(moved, 3, 2, 4)
    if found.code_type == kinds.CORNER_SIZE:
        corners = [site.b(Add, corner, site.b(Mul, part, size)) for corner, part in ((low, first), (high, second))]
        return site.b(Concat, *corners, axis=3)
    centre = site.b(Add, site.b(Mul, first, size), site.b(Div, site.b(Add, low, high), site.number(2)))
    half = site.b(Div, site.b(Mul, site.b(Exp, second), size), site.number(2))
    return site.b(Concat, site.b(Sub, centre, half), site.b(Add, centre, half), axis=3)


def _of_image(
    site: Site,
    found: Any,  # noqa: ANN401
    boxes: Value,
    scores: Value,
    image: int,
    labels: Sequence[int],
) -> Value:
    """Rows of 7 of one image, by label, better scores first."""
    count, priors = len(labels), site.sizes(scores)[2]
    own_boxes = site.reshape(site.cut(boxes, 0, image, image + 1), (count, priors, 4))
    own_scores = site.reshape(site.cut(scores, 0, image, image + 1), (count, priors))
    if found.nms_param.HasField("top_k") and 0 <= found.nms_param.top_k < priors:
        priors = found.nms_param.top_k
        best = site.b.op(TopK, (own_scores, site.integers(priors)), axis=1)
        own_scores = best.results[0]
        places = site.b(BroadcastTo, site.reshape(best.results[1], (count, priors, 1)), site.integers(count, priors, 4))
        own_boxes = site.b(GatherElements, own_boxes, places, axis=1)
    least = site.number(found.confidence_threshold) if found.HasField("confidence_threshold") else None
    chosen = site.b(
        NonMaxSuppression,
        own_boxes,
        site.reshape(own_scores, (count, 1, priors)),
        site.integers(priors),
        site.number(found.nms_param.nms_threshold),
        least,
    )
    pairs = site.b(Gather, chosen, site.integers(0, 2), axis=1)
    kept = site.b(GatherNd, own_scores, pairs)
    if found.keep_top_k > -1:
        some = site.b(Min, site.b(ShapeOf, kept, start=0, end=1), site.integers(found.keep_top_k))
        best = site.b.op(TopK, (kept, some), axis=0)
        order = site.b.op(TopK, (best.results[1], some), axis=0, largest=False).results[0]
        pairs, kept = site.b(Gather, pairs, order, axis=0), site.b(Gather, kept, order, axis=0)
    label = site.b(
        Gather, site.b.constant(np.asarray(labels, np.float32)), site.b(Gather, pairs, site.integers(0), axis=1)
    )
    score = site.b(Unsqueeze, kept, site.integers(1))
    number = site.b(Mul, score, site.number(0))
    columns = [site.b(Add, number, site.number(image)), label, score, site.b(GatherNd, own_boxes, pairs)]
    return site.b(Concat, *columns, axis=1)


__all__ = ["detection_output", "prior_box"]
