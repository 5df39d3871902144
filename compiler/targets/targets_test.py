"""Targets load, explain themselves, and refuse a wrong description in one line."""

import math
from importlib import resources

import pytest

from compiler.errors import InvalidTarget
from compiler.ir import BF16, F16, F32, F64, I8, I32, U8
from compiler.targets import Dataflow, explain, load_target, parse_target, target_names

EDGE = (resources.files("compiler.targets") / "edge-npu.yaml").read_text(encoding="utf-8")


def test_every_named_target_loads_under_its_own_name():
    for name in target_names()[:-1]:
        assert load_target(name).name == name


def test_the_default_is_first_and_has_the_types_it_promises():
    target = load_target(target_names()[0])
    assert (target.name, target.matrix.rows, target.matrix.columns) == ("reference-npu", 32, 32)
    assert target.matrix.product(F32, F32).accumulator is F32
    assert target.matrix.product(U8, I8).accumulator is I32
    assert target.supports(F16)
    assert not target.supports(F64)


def test_an_internal_type_is_allowed_in_programs_and_not_for_tensors():
    target = load_target("edge-npu")
    assert F32 in target.vector.allowed
    assert not target.supports(F32)


def test_systolic_arrays_are_made_by_name():
    target = load_target("systolic-12x20-ws")
    assert (target.matrix.rows, target.matrix.columns) == (12, 20)
    assert target.matrix.dataflow is Dataflow.WEIGHT_STATIONARY
    assert load_target("systolic-1x1-is-ideal").transfer_cycles(10**9) == 0


def test_a_transfer_costs_latency_and_the_bytes_over_the_bandwidth_rounded_up():
    target = load_target("reference-npu")
    assert target.transfer_cycles(0) == 100
    assert target.transfer_cycles(33) == 102
    assert target.with_memory(bytes_per_cycle=math.inf).transfer_cycles(33) == 100


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("bytes: 1048576", "bytes: -3", "key 'sram.bytes' is -3; expected greater than 0"),
        ("banks: 32}", "banks: 33}", "sram.banks is 33; expected a divisor of sram.bytes, 1048576"),
        ("banks: 32}", "banks: 32, x: 3}", "key 'sram.x' is unknown"),
        ("  dram_byte: 160\n", "", "key 'energy.dram_byte' is missing"),
        ("a: float16", "a: float17", "key 'matrix.products.0.a' is 'float17'; expected an element type"),
        ("dataflow: os", "dataflow: oz", "key 'matrix.dataflow' is 'oz'; expected 'os', 'ws' or 'is'"),
        ("bytes_per_cycle: 16", "bytes_per_cycle: .nan", "key 'dram.bytes_per_cycle' is nan; expected"),
        ("  host: ass", "  hoss: ass", "sources lack 'host.latency_cycles'"),
        ("  internal: [float32]\n", "", "the vector unit lacks float32"),
        ("dataflow: os", "dataflow: os\n  dataflow: ws", "key 'dataflow' is given twice"),
        ("alternatives: [ws]", "alternatives: [ws, os]", "name os, ws, os; expected each once"),
    ],
)
def test_a_wrong_description_is_refused_in_one_line(old, new, said):
    assert old in EDGE
    with pytest.raises(InvalidTarget) as refusal:
        parse_target(EDGE.replace(old, new, 1), "mine.yaml")
    assert refusal.value.message.startswith("target 'mine.yaml': ")
    assert said in refusal.value.message
    assert "\n" not in refusal.value.message


@pytest.mark.parametrize("text", ["", "- 1\n", "a: [1", "\t", "[" * 3000], ids=lambda text: text[:9])
def test_text_that_is_no_mapping_is_refused(text):
    with pytest.raises(InvalidTarget, match=r"mine\.yaml"):
        parse_target(text, "mine.yaml")


@pytest.mark.parametrize("name", ["nothing", "systolic", "../x", "systolic-0x4-os", "/nowhere/x.yaml"])
def test_unknown_names_are_refused(name):
    with pytest.raises(InvalidTarget):
        load_target(name)


def test_the_explanation_shows_each_figure_with_its_source():
    text = explain(load_target("reference-npu"))
    assert "640 pJ; Horowitz, ISSCC 2014" in text
    assert "float32 x float32 -> float32" in text


def test_targets_can_be_keys():
    target = load_target("edge-npu")
    other = target.with_memory(bytes_per_cycle=1.0)
    assert {target: 1, other: 2}[parse_target(EDGE, "again")] == 1
    assert target != other


def test_a_mode_scales_what_is_on_chip_and_leaves_the_dram_its_own_clock():
    target = load_target("edge-npu")
    low = load_target("edge-npu@low")
    assert (low.name, low.frequency_hz) == ("edge-npu@low", 400_000_000)
    assert low.dram.bytes_per_cycle * low.frequency_hz == target.dram.bytes_per_cycle * target.frequency_hz
    assert low.dram.latency_cycles == target.dram.latency_cycles / 2
    assert low.energy.mac["int8"] == pytest.approx(0.64 * target.energy.mac["int8"])
    assert low.energy.static_watts == pytest.approx(0.64 * target.energy.static_watts)
    assert low.energy.dram_byte == target.energy.dram_byte
    with pytest.raises(InvalidTarget, match="target 'edge-npu' has no mode 'turbo'; expected one of low"):
        load_target("edge-npu@turbo")


@pytest.mark.parametrize(
    ("name", "element", "peak"),
    # Multiply-accumulates a second as published: a quarter of TPU v3, an SM of A100, an AMX core at 2 GHz.
    [("datacenter-npu", BF16, 123e12 / 4 / 2), ("gpu-sm", F16, 312e12 / 108 / 2), ("cpu-amx", I8, 2.048e12),
     ("ethos-u65", I8, 512e9), ("micro-npu", I8, 128e9)],
)  # fmt: skip
def test_peaks_are_the_published_ones(name, element, peak):
    target = load_target(name)
    rate = target.matrix.rows * target.matrix.columns * target.matrix.product(element, element).depth
    assert rate * target.frequency_hz == pytest.approx(peak, rel=0.01)
