"""What a model's own framework computes for a file of it: TensorFlow, eager torch, OpenCV for Caffe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any


class NoReference(RuntimeError):
    """A model that the reference can't run; the message says why."""


@dataclass(frozen=True, slots=True)
class Native:
    """A framework's own run of a file, on inputs by name in the model's order. It raises `NoReference`."""

    framework: str
    run: Callable[[Mapping[str, Any]], Sequence[Any]]


def native_of(model: Path, weights: Path | None = None) -> Native | None:
    """Return what runs a model in the framework that wrote it; None for ONNX files, whose reference is onnxruntime."""
    from compiler.frontends.door import caffe_files, is_tensorflow, is_torch

    if is_tensorflow(model):
        return Native("TensorFlow", partial(_tensorflow, model))
    if is_torch(model):
        return Native("torch", partial(_torch, model))
    files = caffe_files((model, weights) if weights is not None else model)
    return None if files is None else Native("OpenCV", partial(_opencv, *files))


def _tensorflow(model: Path, feeds: Mapping[str, Any]) -> Sequence[Any]:
    from compiler.frontends.tensorflow import run_native

    return run_native(model, feeds)


def _torch(model: Path, feeds: Mapping[str, Any]) -> Sequence[Any]:
    """The exported program in eager torch, its outputs flattened in torch's own order."""
    import numpy as np
    import torch
    from torch.utils import _pytree as pytree

    from compiler.frontends.torch import load_program, tensor_of
    from compiler.frontends.torch.types import array_from

    program = load_program(model)
    with torch.no_grad():
        found = program.module()(*(tensor_of(np.asarray(array)) for array in feeds.values()))
    return [array_from(torch.as_tensor(value)) for value in pytree.tree_leaves(found) if value is not None]


def _opencv(prototxt: Path, caffemodel: Path | None, feeds: Mapping[str, Any]) -> Sequence[Any]:
    """The tops that no other layer takes, without fused or vectorized forms, which have faults of their own."""
    try:
        import cv2
    except ImportError as error:
        raise NoReference(f"OpenCV is not installed; pip install 'opatlas[caffe]' ({error})") from error
    import numpy as np

    from compiler.frontends.caffe.reader import read_net

    if not hasattr(cv2.dnn, "readNetFromCaffe"):
        raise NoReference(f"OpenCV {cv2.__version__} no longer reads Caffe; pip install 'opencv-python-headless<5'")
    layers = read_net(prototxt).layers
    taken = {bottom for layer in layers for bottom in layer.bottoms}
    makers = {top: layer.name for layer in layers for top in layer.tops if top not in taken}
    cv2.setNumThreads(1)
    cv2.utils.logging.setLogLevel(0)
    try:
        net = cv2.dnn.readNetFromCaffe(str(prototxt), *([] if caffemodel is None else [str(caffemodel)]))
        net.enableFusion(False)
        net.enableWinograd(False)
        for name, value in feeds.items():
            net.setInput(value, name)
        # OpenCV calls a convolution by the name of its top.
        known = set(net.getLayerNames())
        names = [name if name in known else top for top, name in makers.items()]
        return [np.array(tops[0]) for tops in net.forwardAndRetrieve(names)]
    except cv2.error as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise NoReference(f"OpenCV does not run this network: {lines[0] if lines else 'no reason'}") from error
