"""The int8 networks that microcontroller benchmarks use, built by Keras with seeded weights, and their layers' sizes.

ResNet-8, DS-CNN and the autoencoder are those of MLPerf Tiny (Banbury et al. 2021), MobileNetV2 that of Keras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Convolution:
    """One convolution, depthwise convolution or dense layer: a window over an image, padded to cover every place."""

    kind: str
    image: tuple[int, int, int]
    out: tuple[int, int, int]
    kernel: tuple[int, int]
    stride: int

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        height, width, filters = self.out
        channels = 1 if self.kind == "DepthwiseConv2D" else self.image[2]
        return height * width * filters * self.kernel[0] * self.kernel[1] * channels


def resnet8() -> Any:  # noqa: ANN401 - a Keras model
    """Return ResNet-8 for 32x32 images."""
    import keras
    from keras import layers

    def conv(x: Any, filters: int, stride: int, *, is_last: bool = False) -> Any:  # noqa: ANN401 - Keras tensors
        x = layers.BatchNormalization()(layers.Conv2D(filters, 3, strides=stride, padding="same")(x))
        return x if is_last else layers.ReLU()(x)

    given = layers.Input((32, 32, 3), batch_size=1)
    x = conv(given, 16, 1)
    x = layers.ReLU()(layers.Add()([x, conv(conv(x, 16, 1), 16, 1, is_last=True)]))
    for filters in (32, 64):
        y = conv(conv(x, filters, 2), filters, 1, is_last=True)
        x = layers.ReLU()(layers.Add()([layers.Conv2D(filters, 1, strides=2, padding="same")(x), y]))
    x = layers.Reshape((64,))(layers.AveragePooling2D(8)(x))
    return keras.Model(given, layers.Softmax()(layers.Dense(10)(x)))


def ds_cnn() -> Any:  # noqa: ANN401 - a Keras model
    """Return the keyword spotting network."""
    import keras
    from keras import layers

    given = layers.Input((49, 10, 1), batch_size=1)
    x = layers.Conv2D(64, (10, 4), strides=2, padding="same")(given)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    for _ in range(4):
        x = layers.ReLU()(layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same")(x)))
        x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(64, 1)(x)))
    x = layers.Reshape((64,))(layers.AveragePooling2D((25, 5))(x))
    return keras.Model(given, layers.Softmax()(layers.Dense(12)(x)))


def autoencoder() -> Any:  # noqa: ANN401 - a Keras model
    """Return the anomaly detection network."""
    import keras
    from keras import layers

    x = given = layers.Input((640,), batch_size=1)
    for width in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = layers.ReLU()(layers.BatchNormalization()(layers.Dense(width)(x)))
    return keras.Model(given, layers.Dense(640)(x))


def mobilenetv2() -> Any:  # noqa: ANN401 - a Keras model
    """Return MobileNetV2 for 224x224 images."""
    import keras

    return keras.applications.MobileNetV2(input_tensor=keras.layers.Input((224, 224, 3), batch_size=1), weights=None)


MODELS: Final[Mapping[str, Callable[[], Any]]] = {
    "resnet8": resnet8,
    "ds-cnn": ds_cnn,
    "autoencoder": autoencoder,
    "mobilenetv2": mobilenetv2,
}


def as_tflite(model: Any) -> bytes:  # noqa: ANN401 - a Keras model
    """Return a model quantized to int8, inputs and outputs too, calibrated on seeded noise."""
    import numpy as np
    import tensorflow as tf

    shape = model.inputs[0].shape[1:]

    def samples() -> Iterator[list[Any]]:
        random = np.random.default_rng(0)
        for _ in range(4):
            yield [random.standard_normal((1, *shape)).astype(np.float32)]

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = samples
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    return bytes(converter.convert())


def convolutions(model: Any) -> list[Convolution]:  # noqa: ANN401 - a Keras model
    """Return the layers of a model that are sums of products, in order."""
    found = []
    for layer in model.layers:
        kind = type(layer).__name__
        if kind not in {"Conv2D", "DepthwiseConv2D", "Dense"}:
            continue
        image, out = (tuple(tensor.shape[1:]) for tensor in (layer.input, layer.output))
        if kind == "Dense":
            found.append(Convolution("FullyConnected", (1, 1, image[-1]), (1, 1, out[-1]), (1, 1), 1))
            continue
        found.append(Convolution(kind, image, out, tuple(layer.kernel_size), layer.strides[0]))
    return found
