"""Programs as text: they read back exactly, and wrong text is refused with line and column."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from compiler.errors import InvalidText
from compiler.ir import F32, I64, Constant
from compiler.ops.work import Apply, Arg, Literal
from compiler.program import constant_bytes, constant_key, parse_program, print_program
from compiler.program.executable import Program
from compiler.program.executable_parser import load_executable
from compiler.program.handmade_test import matmul_program, one_matmul
from compiler.program.instructions import Address, Memory, Operand, Region, Vector
from compiler.program.random_programs_test import programs
from compiler.targets import Dataflow


@given(programs())
def test_programs_read_back_exactly(program):
    text = print_program(program)
    again = parse_program(text)
    assert again == program
    assert print_program(again) == text


def test_constants_stand_as_digests_with_their_data_beside():
    weights = np.arange(33 * 20, dtype=np.float32).reshape(33, 20)
    program = matmul_program(32, 20, 33, 16, weights=weights)
    constant = program.buffers[1].constant
    data = {constant_key(constant): constant_bytes(constant)}
    assert parse_program(print_program(program), data) == program
    with pytest.raises(InvalidText, match=r"3:\d+: found 'blob_.*; expected a constant whose data is given"):
        parse_program(print_program(program))
    with pytest.raises(InvalidText, match="expected 2640 bytes of data"):
        parse_program(print_program(program), {constant_key(constant): constant_bytes(constant)[:-4]})


def test_strings_are_kept_as_text():
    assert constant_bytes(Constant.of(np.array(["a", "ü"], object))).tobytes() == b'["a", "\\u00fc"]'


def vector(body):
    out = Operand(Region(Memory.SRAM, Address(0), F32, (4,)))
    return Program("p", "t", (), (), (Vector(0, 0, (3,), (), body, out),), 0, 12)


@pytest.mark.parametrize(
    "value", [0, -1, True, False, 0.1, -0.0, 1e300, math.inf, -math.inf, math.nan, 2 + 3j, 1 << 62]
)
def test_scalars_read_back_as_what_they_were(value):
    program = vector(Literal(value, I64))
    found = parse_program(print_program(program)).body[0].body.value
    assert type(found) is type(value)
    assert repr(found) == repr(value)


def test_a_shared_node_is_written_once_and_stays_shared():
    node = Arg(0, F32)
    for _ in range(60):
        node = Apply("add", (node, node), F32)
    text = print_program(vector(node))
    assert text.count("f32.add") == 60
    found = parse_program(text).body[0].body
    assert found.operands[0] is found.operands[1]


@pytest.mark.parametrize("dataflow", list(Dataflow))
def test_a_dataflow_asked_for_parses_back(dataflow):
    program = one_matmul(2, 3, 4, "reference-npu")
    program = replace(program, body=(replace(program.body[0], dataflow=dataflow),))
    assert f'dataflow="{dataflow.value}"' in print_program(program)
    assert parse_program(print_program(program)) == program


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1:1: found .*expected program"),
        ("program('a', 'b', dram=1)", "1:1: found .*; expected an argument 'sram'"),
        ("program('a', 'b', dram=1, sram=2, x=3)", "1:37: found '3'; expected no further argument"),
        ("program('a', 'b', dram=1.5, sram=2)", "1:24: found '1.5'; expected a whole number"),
        ("program('a', 'b', dram=1, sram=2)\nfly(1)", "2:1: found 'fly.1.'; expected one of transfer, matmul, vector"),
        ("program('a', 'b', dram=1, sram=2)\nfor i1 in range(2):\n    pass", "2:5: found 'i1'; expected i0"),
        ("program('a', 'b', dram=1, sram=2)\nbuffer('x', 0, 'tensor<2xg7>', 'input')", "2:16: found .*expected a type"),
        ("program('a', 'b', dram=1, sram=2)\nbuffer('x', 0, 'tensor<2xf32>', 'in')", "expected one of input, output"),
        ("program('a', 'b', dram=1, sram=2)\nimport os", "2:1: found 'import os'; expected name"),
        ("program('a', 'b', dram=1, sram=2)\ntransfer(0, 0, [4], dram(f32, 2*i0, []), 1)", "2:31: found .2 . i0."),
        ("program('a'", r"1:\d+: .*; expected the text of a program"),
    ],
)  # fmt: skip
def test_wrong_text_is_refused_with_its_place(text, said):
    with pytest.raises(InvalidText, match=said):
        parse_program(text)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no zip", b"text"])
def test_a_file_that_is_no_executable_is_refused(content, tmp_path):
    path = tmp_path / "x.opx"
    path.write_bytes(content)
    with pytest.raises(InvalidText, match="is no saved executable"):
        load_executable(path)
    with pytest.raises(InvalidText, match="is no saved executable"):
        load_executable(tmp_path / "missing.opx")


def test_a_number_that_runs_into_a_name_is_refused_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidText, match="invalid decimal literal"):
            parse_program("program('p', 1x)", {})
