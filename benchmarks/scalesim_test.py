"""Layers through the whole compiler take the cycles that SCALE-Sim measures; it itself is asked by the benchmark."""

import math

import pytest

from benchmarks.scalesim import closed_form, every_layer, simulate
from benchmarks.shapes import NETWORKS, conv, matmul


def test_the_shapes_are_those_of_the_networks():
    macs = {name: sum(layer.macs for layer in network()) for name, network in NETWORKS.items()}
    # Published: ResNet-50 4.1 G, MobileNet 569 M multiply-accumulates at 224 x 224.
    assert macs["resnet50"] == pytest.approx(4.1e9, rel=0.03)
    assert macs["mobilenet"] == pytest.approx(569e6, rel=0.01)
    assert macs["bert-base"] == 128 * 768 * 768 * 4 + 2 * 128 * 128 * 768 + 2 * 128 * 768 * 3072


@pytest.mark.parametrize("dataflow", ["os", "ws", "is"])
def test_every_layer_takes_the_closed_form_on_a_plain_array(dataflow):
    layers = every_layer()
    rows = simulate(layers, f"systolic-32x32-{dataflow}-ideal")
    assert [row["cycles"] for row in rows] == [closed_form(layer, 32, dataflow) for layer in layers]


@pytest.mark.parametrize(
    ("layer", "cycles", "filter_reads"),
    # As SCALE-Sim 3.0.0 reports them for 8 x 16, weight stationary, 2 of 4, and one cycle more each.
    [(conv(14, 3, 16, 40), 4697 + 1, 2880), (conv(9, 3, 5, 7, 2), 137 + 1, 161)],
)
def test_pruned_weights_take_the_cycles_and_reads_of_scale_sim_s_sparse_mode(layer, cycles, filter_reads):
    (row,) = simulate([layer], "systolic-8x16-ws-2of4-ideal")
    assert (row["cycles"], row["reads"][1]) == (cycles, filter_reads)


def test_utilization_is_of_executed_products():
    (row,) = simulate([matmul(64, 64, 64)], "systolic-32x32-os-ideal")
    assert row["utilization"] == 64**3 / (row["cycles"] * 1024)
    assert row["writes"] == math.prod((64, 64))
