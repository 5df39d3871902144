"""OpenCV's reader of Caffe networks, the one program that still runs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.errors import Unavailable

Array = NDArray[Any]


def run(prototxt: str, caffemodel: bytes | None, inputs: Mapping[str, Array], layer: str | None = None) -> list[Array]:
    """All tops of a layer, or of the last one.

    Raises `Unavailable` without OpenCV, or with its own reason where it refuses.
    """
    try:
        import cv2
    except ImportError as error:
        raise Unavailable(f"OpenCV is not installed ({error}); pip install 'opatlas[caffe]'") from error
    if not hasattr(cv2.dnn, "readNetFromCaffe"):
        raise Unavailable(f"OpenCV {cv2.__version__} no longer reads Caffe; pip install 'opencv-python-headless<5'")
    files = [np.frombuffer(prototxt.encode(), np.uint8)]
    if caffemodel:
        files.append(np.frombuffer(caffemodel, np.uint8))
    cv2.setNumThreads(1)
    cv2.utils.logging.setLogLevel(0)
    try:
        net = cv2.dnn.readNetFromCaffe(*files)
        # Fused and vectorized forms have their own faults.
        net.enableFusion(False)
        net.enableWinograd(False)
        for name, value in inputs.items():
            net.setInput(value, name)
        # OpenCV calls a convolution by the name of its top.
        names = [name for name in net.getLayerNames() if name == layer] or net.getUnconnectedOutLayersNames()[-1:]
        return [np.array(top) for top in net.forwardAndRetrieve(list(names))[0]]
    except cv2.error as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise Unavailable(f"OpenCV: {lines[0] if lines else 'no reason'}"[:200]) from error
