"""A planted fault is seen: each change of a program, of the simulator's arithmetic or of a converter turns cases red.

The faults are small on purpose: one element's distance in an address, one instruction that does not wait, one row less,
truncation where rounding is due, a formula that is wrong in the fourth digit.
"""

from __future__ import annotations

import dataclasses
import sys

import ml_dtypes
import numpy as np
import pytest
from onnx import parser

from compiler import api
from compiler.frontends.onnx import site
from compiler.ir import BF16
from compiler.program.executable import Program
from compiler.program.instructions import Matmul, Transfer, Vector
from compiler.simulator import convert as conversions
from compiler.simulator import matmul
from conformance.backends import load_backend
from conformance.case import CaseInfo, LoadedCase
from conformance.judge import judge_case
from reports.record import Outcome, Placement

BODIES = {
    "matmul": ("float[70,65] a, float[65,50] b", "float[70,50] y", "y = MatMul (a, b)", "dot_product"),
    "matmul-chain": (
        "float[40,65] a, float[65,50] b, float[50,30] c", "float[40,30] y",
        "d = MatMul (a, b) e = Relu (d) y = MatMul (e, c)", "max_relative(64)",
    ),
    "matmul-tiled": ("float[700,1500] a, float[1500,600] b", "float[700,600] y", "y = MatMul (a, b)", "dot_product"),
    "conv": (
        "float[1,3,12,12] a, float[5,3,3,3] b", "float[1,5,12,12] y",
        "y = Conv <pads = [1,1,1,1]> (a, b)", "dot_product",
    ),
    "add-bfloat16": ("bfloat16[40,33] a, bfloat16[40,33] b", "bfloat16[40,33] y", "y = Add (a, b)", "ulp(0.5)"),
    "cast-bfloat16": ("float[40,33] a", "bfloat16[40,33] y", "y = Cast <to = 16> (a)", "ulp(0.5)"),
    "exp-bfloat16": ("bfloat16[40,33] a", "bfloat16[40,33] y", "y = Exp (a)", "ulp(0.51)"),
    "reduce": (
        "float[20,33] a", "float[20] y",
        "axes = Constant <value_ints = [1]> () y = ReduceSum <keepdims = 0> (a, axes)", "reduce_sum",
    ),
    "max-pool": ("float[1,2,9,9] a", "float[1,2,7,7] y", "y = MaxPool <kernel_shape = [3,3]> (a)", "exact"),
    "transpose": ("float[20,33] a", "float[33,20] y", "y = Transpose (a)", "exact_signed_zero"),
    "hard-sigmoid": ("float[50] a", "float[50] y", "y = HardSigmoid (a)", "input_scaled(2)"),
    "sigmoid": ("float[50] a", "float[50] y", "y = Sigmoid (a)", "abs_error(sigmoid)"),
    "softmax": ("float[8,33] a", "float[8,33] y", "y = Softmax (a)", "max_relative(4)"),
}  # fmt: skip
INFO = {name: CaseInfo(id=name, suite="faults", operator=name) for name in BODIES}


class Suite:
    """One small model an entry of BODIES, on normal data."""

    def load(self, info):
        inputs, outputs, body, tolerance = BODIES[info.id]
        model = parser.parse_model(
            f'<ir_version: 10, opset_import: ["" : 22]> g ({inputs}) => ({outputs}) {{ {body} }}'
        )
        generator = np.random.default_rng(len(info.id))
        values = []
        for value in model.graph.input:
            shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            dtype = ml_dtypes.bfloat16 if value.type.tensor_type.elem_type == 16 else np.float32
            values.append(generator.standard_normal(shape).astype(dtype))
        return LoadedCase(model, values, tolerance)


def judged(name):
    return judge_case(INFO[name], Suite(), load_backend("opatlas", "reference-npu"), lambda _: None)


@pytest.mark.parametrize("name", BODIES)
def test_without_a_fault_every_case_passes_on_the_accelerator(name):
    found = judged(name)
    assert (found.outcome, found.report.placement) == (Outcome.PASSED, Placement.ACCELERATOR), found.reason


def is_red(name):
    return judged(name).outcome not in (Outcome.PASSED, Outcome.UNVERIFIED, Outcome.NOT_RUN, Outcome.FOLDED)


# faults of programs


def rebuilt(value, change):
    """The same tree of steps, with `change` applied to every instruction and loop, inside first."""
    if isinstance(value, tuple):
        return tuple(rebuilt(part, change) for part in value)
    if isinstance(value, Matmul | Transfer | Vector):
        return change(value)
    held = [name for name in ("block", "steps", "body", "program", "then_block", "else_block") if hasattr(value, name)]
    if not held:
        return value
    made = dataclasses.replace(value, **{name: rebuilt(getattr(value, name), change) for name in held})
    return change(made)


@pytest.fixture
def plant(monkeypatch):
    """Change every program that lowering makes; fail if there was nothing to change."""
    hits = []

    def install(change):
        def counted(value):
            made = change(value)
            hits.append(made is not value)
            return made

        original = api.lower
        monkeypatch.setattr(api, "lower", lambda *args, **names: rebuilt(original(*args, **names), counted))

    yield install
    assert any(hits), "the fault was planted nowhere"


def moved(region, distance):
    address = dataclasses.replace(region.address, base=region.address.base + distance)
    return dataclasses.replace(region, address=address)


def moved_operand(operand, distance):
    return dataclasses.replace(operand, region=moved(operand.region, distance))


def operand_address(step):
    if isinstance(step, Matmul):
        return dataclasses.replace(step, a=moved(step.a, 4))
    return step


def result_address(step):
    if isinstance(step, Matmul):
        return dataclasses.replace(step, out=moved(step.out, 4))
    return step


def vector_address(step):
    if isinstance(step, Vector) and step.inputs:
        size = max(step.inputs[0].region.element.bits // 8, 1)
        return dataclasses.replace(step, inputs=(moved_operand(step.inputs[0], size), *step.inputs[1:]))
    return step


def without_waits_of(kind):
    def change(step):
        return dataclasses.replace(step, waits=()) if isinstance(step, kind) and step.waits else step

    return change


def one_row_less(step):
    if isinstance(step, Matmul) and max(step.m) > 1:
        row = next(index for index, extent in enumerate(step.m) if extent > 1)
        return dataclasses.replace(step, m=(*step.m[:row], step.m[row] - 1, *step.m[row + 1 :]))
    return step


def one_term_less(step):
    if isinstance(step, Matmul) and step.k and step.k[-1] > 1:
        return dataclasses.replace(step, k=(*step.k[:-1], step.k[-1] - 1))
    return step


def one_tile_less(step):
    return dataclasses.replace(step, body=step.body[:-1]) if isinstance(step, Program) else step


def one_point_less(step):
    if isinstance(step, Vector) and step.extents and step.extents[0] > 1:
        return dataclasses.replace(step, extents=(step.extents[0] - 1, *step.extents[1:]))
    return step


def swapped_strides(step):
    if isinstance(step, Transfer) and len(step.extents) >= 2:
        strides = step.destination.region.strides
        region = dataclasses.replace(step.destination.region, strides=(*strides[:-2], strides[-1], strides[-2]))
        return dataclasses.replace(step, destination=dataclasses.replace(step.destination, region=region))
    return step


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("matmul", operand_address),
        ("matmul", result_address),
        ("matmul-chain", operand_address),
        ("conv", operand_address),
        ("add-bfloat16", vector_address),
        ("reduce", vector_address),
        ("max-pool", vector_address),
        ("matmul", one_row_less),
        ("matmul", one_term_less),
        ("matmul-tiled", one_tile_less),
        ("matmul-tiled", one_row_less),
        ("conv", one_row_less),
        ("add-bfloat16", one_point_less),
        ("softmax", one_point_less),
        ("matmul", without_waits_of(Matmul)),
        ("matmul", without_waits_of(Transfer)),
        ("matmul-chain", without_waits_of(Vector)),
        ("reduce", without_waits_of(Vector)),
        ("matmul", swapped_strides),
    ],
)
def test_a_fault_in_a_program_turns_its_case_red(name, change, plant):
    plant(change)
    assert is_red(name)


# faults of arithmetic


def truncated(values):
    """bfloat16 by cutting off the lower half of float32."""
    raw = np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return raw.view(np.float32).astype(ml_dtypes.bfloat16)


def replace_everywhere(monkeypatch, original, replacement):
    """Patch a function in every module of the compiler that holds it by name."""
    for name, module in list(sys.modules.items()):
        if name.startswith("compiler."):
            for key, value in list(vars(module).items()):
                if value is original:
                    monkeypatch.setattr(module, key, replacement)


@pytest.mark.parametrize("name", ["exp-bfloat16", "cast-bfloat16"])
def test_truncation_instead_of_rounding_turns_its_case_red(name, monkeypatch):
    original = conversions.convert

    def convert(values, element):
        if element is BF16 and values.dtype != element.dtype:
            return truncated(values)
        return original(values, element)

    replace_everywhere(monkeypatch, original, convert)
    assert is_red(name)


@pytest.mark.parametrize("name", ["matmul", "matmul-tiled", "conv"])
def test_a_shortened_mantissa_in_the_matrix_array_turns_its_case_red(name, monkeypatch):
    """tf32: ten bits of mantissa in the operands of float32 products."""
    read = matmul.Factor.read

    def shortened(factor, memories, k):
        made = np.ascontiguousarray(read(factor, memories, k))
        return (made.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) if made.dtype == np.float32 else made

    monkeypatch.setattr(matmul.Factor, "read", shortened)
    assert is_red(name)


# faults of converters


def with_other_attribute(original, name, factor):
    """A converter that reads one attribute wrong."""

    def convert(at):
        read = type(at).attribute
        try:
            type(at).attribute = lambda self, key: read(self, key) * factor if key == name else read(self, key)
            return original(at)
        finally:
            type(at).attribute = read

    return convert


def with_swapped_inputs(original):
    """A converter that takes its first two inputs the wrong way round."""

    def convert(at):
        read = type(at).input
        try:
            type(at).input = lambda self, index: read(self, 1 - index if index < 2 else index)
            return original(at)
        finally:
            type(at).input = read

    return convert


def plant_in_converter(monkeypatch, operator, change):
    entries = site._TABLE["", operator]
    changed = [dataclasses.replace(entry, convert=change(entry.convert)) for entry in entries]
    monkeypatch.setitem(site._TABLE, ("", operator), changed)


def test_a_coefficient_wrong_in_the_fourth_digit_turns_its_case_red(monkeypatch):
    plant_in_converter(monkeypatch, "HardSigmoid", lambda c: with_other_attribute(c, "alpha", 1.0009))
    assert is_red("hard-sigmoid")


def test_another_function_turns_its_case_red(monkeypatch):
    plant_in_converter(monkeypatch, "Sigmoid", lambda _: site.converter_for("", "Tanh", 13))
    assert is_red("sigmoid")


def test_swapped_inputs_turn_their_case_red(monkeypatch):
    plant_in_converter(monkeypatch, "MatMul", with_swapped_inputs)
    assert is_red("matmul")
