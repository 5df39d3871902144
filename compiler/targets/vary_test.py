"""A target with other figures: units, short names, what moves along, and refusals."""

import math

import pytest

from compiler.errors import InvalidTarget
from compiler.targets import load_target
from compiler.targets.vary import vary

TARGET = load_target("reference-npu")


@pytest.mark.parametrize(
    ("text", "size"), [("4M", 4 << 20), ("4MB", 4 << 20), ("4MiB", 4 << 20), ("512K", 512 << 10), ("65536", 65536)]
)
def test_sizes_of_memories_go_by_1024_and_keep_the_size_of_a_bank(text, size):
    found = vary(TARGET, {"sram": text}).sram
    assert found.bytes == size
    assert found.bytes // found.banks == TARGET.sram.bytes // TARGET.sram.banks


def test_a_bandwidth_is_bytes_a_cycle_or_a_rate():
    assert vary(TARGET, {"bandwidth": "12.8"}).dram.bytes_per_cycle == 12.8
    assert vary(TARGET, {"bandwidth": "51.2GB/s"}).dram.bytes_per_cycle == pytest.approx(51.2)
    assert vary(TARGET, {"bandwidth": "51.2GB/s", "frequency": "500MHz"}).dram.bytes_per_cycle == pytest.approx(102.4)
    assert math.isinf(vary(TARGET, {"bandwidth": "inf"}).dram.bytes_per_cycle)


def test_the_dram_keeps_its_own_clock():
    found = vary(TARGET, {"frequency": "2GHz"})
    assert found.frequency_hz == 2_000_000_000
    assert found.dram.bytes_per_cycle == TARGET.dram.bytes_per_cycle / 2
    assert found.dram.latency_cycles == 2 * TARGET.dram.latency_cycles


def test_figures_go_by_short_name_or_by_key():
    found = vary(TARGET, {"rows": "16", "columns": "64", "dataflow": "ws", "vector.cycles.division": "7"})
    assert (found.matrix.rows, found.matrix.columns, found.matrix.dataflows) == (16, 64, (found.matrix.dataflow,))
    assert found.matrix.dataflow.value == "ws"
    assert found.vector.cycles.division == 7
    assert not vary(TARGET, {"matrix.hide_preload": "false"}).matrix.hide_preload
    assert vary(TARGET, {"energy.mac.int8": "0.25"}).energy.mac["int8"] == 0.25


def test_what_is_not_changed_stays():
    assert vary(TARGET, {}) == TARGET
    assert vary(TARGET, {"rows": "32"}) == TARGET


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"x": "1"}, "'x' is no figure of a target; expected one of sram, bandwidth"),
        ({"matrix": "1"}, "'matrix' is no figure"),
        ({"matrix.products": "1"}, "'matrix.products' is no figure"),
        ({"rows": "many"}, "matrix.rows=many: expected a number"),
        ({"rows": "1.2.3"}, "expected a number"),
        ({"rows": "0"}, "key 'matrix.rows' is 0; expected greater than 0"),
        ({"rows": "2.5"}, "key 'matrix.rows' is 2.5; expected"),
        ({"rows": "8", "matrix.rows": "8"}, "name a figure twice"),
        ({"sram": "1GHz"}, "sram.bytes=1GHz: expected a number, with a unit B"),
        ({"dataflow": "os+ws"}, "key 'matrix.dataflow' is 'os.ws'"),
        ({"frequency": "0"}, "key 'frequency_hz' is 0"),
    ],
)
def test_what_a_target_cannot_have_is_refused_in_one_line(changes, said):
    with pytest.raises(InvalidTarget, match=said) as refusal:
        vary(TARGET, changes)
    assert "\n" not in refusal.value.message
