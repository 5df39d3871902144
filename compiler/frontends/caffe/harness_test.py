"""Networks of a few layers for tests: weights to bytes, run by the interpreter and by OpenCV."""

import numpy as np

from compiler.frontends.caffe import import_caffe
from compiler.frontends.caffe.reader import PB
from compiler.ops.interpreter import interpret


def weights(old=False, legacy=False, **layers):
    """A caffemodel: name of a layer to its arrays, in the second format or the first."""
    net = PB.NetParameter()
    for name, arrays in layers.items():
        layer = (net.layers if old else net.layer).add()
        layer.name = name
        for array in arrays:
            blob = layer.blobs.add()
            blob.data.extend(np.asarray(array, np.float32).ravel().tolist())
            dims = np.shape(array)
            if legacy:
                dims = (1,) * (4 - len(dims)) + dims
                blob.num, blob.channels, blob.height, blob.width = dims
            else:
                blob.shape.dim.extend(dims)
    return net.SerializeToString()


def inputs(*shapes):
    """The legacy form of inputs: a, b, c ..."""
    return "".join(
        f'input: "{name}" input_shape {{ {" ".join(f"dim: {d}" for d in shape)} }}\n'
        for name, shape in zip("abcde", shapes, strict=False)
    )


def run(text, model, *arrays):
    """The outputs, in the order of the graph."""
    return interpret(import_caffe(text, model), list(arrays))


def layer(kind, *arrays, parameters="", model=(), tops=1):
    """The outputs of one layer on arrays a, b ... with weights."""
    bottoms = " ".join(f'bottom: "{name}"' for name, _ in zip("abcde", arrays, strict=False))
    named = " ".join(f'top: "y{index}"' for index in range(tops))
    text = inputs(*(np.shape(one) for one in arrays))
    text += f'layer {{ name: "it" type: "{kind}" {bottoms} {named} {parameters} }}\n'
    blobs = weights(it=model) if model else None
    return run(text, blobs, *(np.asarray(one, np.float32) for one in arrays))


def draw(*shape, seed=0):
    """Normal numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)
