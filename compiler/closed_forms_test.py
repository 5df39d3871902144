"""Cycles of whole models on plain systolic arrays equal the closed forms of published simulators.

Without overlap and with infinite bandwidth a matrix product of M x N x K on an array of R rows and C columns takes

- output stationary: ceil(M/R) * ceil(N/C) * (K + R + C - 2)
- weight stationary: ceil(K/R) * ceil(N/C) * (M + 2R + C - 2)
- input stationary: ceil(K/R) * ceil(M/C) * (N + 2R + C - 2)

cycles, one more than the index of the last cycle that SCALE-Sim reports. A convolution is the product with M = output
positions, N = output channels, K = taps times input channels.
"""

from __future__ import annotations

from math import ceil, prod
from typing import Final

import numpy as np
import pytest

from compiler.api import Options, compile
from compiler.ir import F32, Builder, Graph, tensor
from compiler.ops.contraction import Conv, MatMul
from compiler.ops.elementwise import Add

PRODUCTS: Final = [
    (128, 3072, 768), (128, 768, 768), (128, 768, 3072), (197, 768, 768), (1024, 1024, 64), (64, 64, 1024),
    (1, 1000, 2048), (49, 512, 4608), (7, 5, 3), (33, 65, 17), (32, 32, 32), (31, 33, 1), (1, 1, 1), (256, 256, 256),
    (100, 1, 100),
]  # fmt: skip
CONVOLUTIONS: Final = [  # channels in, out, image side, kernel side, stride, padding: layers of ResNet-18
    (3, 64, 224, 7, 2, 3), (64, 64, 56, 3, 1, 1), (64, 128, 56, 3, 2, 1), (64, 128, 56, 1, 2, 0),
    (128, 128, 28, 3, 1, 1), (256, 256, 14, 3, 1, 1), (512, 512, 7, 3, 1, 1),
]  # fmt: skip
ARRAYS: Final = [(32, 32), (128, 128), (8, 16)]


def closed_form(dataflow: str, m: int, n: int, k: int, rows: int, columns: int) -> int:
    """The cycles of one product."""
    down, across, each = {
        "os": (m, n, k + rows + columns - 2),
        "ws": (k, n, m + 2 * rows + columns - 2),
        "is": (k, m, n + 2 * rows + columns - 2),
    }[dataflow]
    return ceil(down / rows) * ceil(across / columns) * each


def _cycles(graph: Graph, array: tuple[int, int], dataflow: str) -> int:
    target = f"systolic-{array[0]}x{array[1]}-{dataflow}-ideal"
    return compile(graph, target, options=Options(overlap=False)).estimate().cycles


@pytest.mark.parametrize("dataflow", ["os", "ws", "is"])
@pytest.mark.parametrize("array", ARRAYS, ids=str)
@pytest.mark.parametrize("shape", PRODUCTS, ids=str)
def test_product_takes_the_cycles_of_the_closed_form(
    shape: tuple[int, int, int], array: tuple[int, int], dataflow: str
) -> None:
    m, n, k = shape
    graph = Graph("product", [tensor(F32, (m, k)), tensor(F32, (k, n))])
    builder = Builder(graph)
    builder.output(builder(MatMul, *graph.inputs))
    assert _cycles(graph, array, dataflow) == closed_form(dataflow, m, n, k, *array)


@pytest.mark.parametrize("dataflow", ["os", "ws", "is"])
@pytest.mark.parametrize("array", ARRAYS, ids=str)
@pytest.mark.parametrize("layer", CONVOLUTIONS, ids=str)
def test_convolution_takes_the_cycles_of_the_closed_form(
    layer: tuple[int, int, int, int, int, int], array: tuple[int, int], dataflow: str
) -> None:
    channels, filters, side, kernel, stride, pad = layer
    graph = Graph("layer", [tensor(F32, (1, channels, side, side)), tensor(F32, (filters, channels, kernel, kernel))])
    builder = Builder(graph)
    result = builder(Conv, *graph.inputs, strides=(stride, stride), pads=(pad,) * 4)
    builder.output(result)
    # Padding is filled by the vector unit before the product, in cycles that published simulators do not count.
    target = f"systolic-{array[0]}x{array[1]}-{dataflow}-ideal"
    report = compile(graph, target, options=Options(overlap=False)).estimate()
    positions = prod(result.tensor.shape[2:])
    wanted = closed_form(dataflow, positions, filters, channels * kernel * kernel, *array)
    assert report.report.busy["matrix"] == wanted


@pytest.mark.parametrize(
    ("shape", "array", "dataflow", "published"),
    [
        ((128, 3072, 768), (32, 32), "os", 318_719),
        ((128, 3072, 768), (32, 32), "ws", 511_487),
        ((128, 3072, 768), (32, 32), "is", 303_935),
        ((128, 768, 768), (128, 128), "os", 6_131),
    ],
)
def test_published_figures_of_transformer_layers_are_met(
    shape: tuple[int, int, int], array: tuple[int, int], dataflow: str, published: int
) -> None:
    """The first feed-forward layer and a projection of BERT-base: the index of SCALE-Sim's last cycle, plus one."""
    m, n, k = shape
    graph = Graph("layer", [tensor(F32, (m, k)), tensor(F32, (k, n))])
    builder = Builder(graph)
    builder.output(builder(MatMul, *graph.inputs))
    assert _cycles(graph, array, dataflow) == published + 1


def test_compulsory_traffic_is_what_comes_in_and_what_goes_out_once() -> None:
    """A constant and an input read twice count once, what is in between does not count."""
    graph = Graph("test", [tensor(F32, (8, 16))])
    builder = Builder(graph)
    weights = builder.constant(np.ones((16, 16), np.float32))
    product = builder(MatMul, builder(MatMul, *graph.inputs, weights), weights)
    builder.output(builder(Add, product, *graph.inputs))
    assert compile(graph).estimate().compulsory_bytes == 4 * (8 * 16 + 16 * 16 + 8 * 16)
