"""DMA with lookups: rows gathered from DRAM and scattered to it, by indices that lie in SRAM."""

import numpy as np
import pytest

from compiler.errors import EvaluationError
from compiler.ir import F32, I4, I64, UNKNOWN_LOCATION, type_of
from compiler.ops.work import OutOfRange
from compiler.program import verify_program
from compiler.program.executable import Buffer, Kernel, Program, Role
from compiler.program.handmade_test import DRAM, SRAM, dense, executable
from compiler.program.instructions import Address, Lookup, Operand, Region, Transfer, Wait
from compiler.simulator import execute
from compiler.targets import load_target

KERNEL = Kernel("k", ("gather",), UNKNOWN_LOCATION, 0, 0, 0)
TABLE = np.random.default_rng(3).standard_normal((9, 4)).astype(np.float32)


def run(buffers, steps, inputs):
    program = Program("rows", "reference-npu", buffers, (KERNEL,), steps, 1 << 16, 1 << 12)
    verify_program(program, load_target("reference-npu"))
    return execute(executable(program), inputs)[0]


def rows(index, rule=OutOfRange.WRAP):
    return Lookup(Region(SRAM, Address(1024), I64, (8, 0)), 16, 9, rule), (len(index), 4)


def load_index(index):
    region = (len(index),)
    return Transfer(0, 0, region, Operand(dense(DRAM, 4096, I64, region)), Operand(dense(SRAM, 1024, I64, region)))


def gathered(index, rule=OutOfRange.WRAP, fill=None):
    lookup, extents = rows(index, rule)
    out = np.zeros(extents, np.float32)
    buffers = (
        Buffer("table", 0, type_of(TABLE), Role.INPUT),
        Buffer("index", 4096, type_of(index), Role.INPUT),
        Buffer("out", 8192, type_of(out), Role.OUTPUT),
    )
    table = Operand(Region(DRAM, Address(0), F32, (0, 4)), (lookup,), fill)
    steps = (
        load_index(index),
        Transfer(1, 0, extents, table, Operand(dense(SRAM, 0, F32, extents)), (Wait(0),)),
        Transfer(
            2, 0, extents, Operand(dense(SRAM, 0, F32, extents)), Operand(dense(DRAM, 8192, F32, extents)), (Wait(1),)
        ),
    )
    return run(buffers, steps, [TABLE, index])


def test_rows_are_gathered_from_dram():
    index = np.array([8, 0, -1, 3], np.int64)
    assert np.array_equal(gathered(index), TABLE[index])


def test_rows_out_of_range_are_filled_or_refused():
    index = np.array([8, 9, -1], np.int64)
    found = gathered(index, OutOfRange.DROP, fill=7.0)
    assert np.array_equal(found[0], TABLE[8])
    assert np.array_equal(found[1:], np.full((2, 4), 7, np.float32))
    with pytest.raises(EvaluationError, match=r"transfer 1 of program 'rows': index 9 is out of range"):
        gathered(index)


def test_rows_are_scattered_to_dram_and_the_last_of_duplicates_stays():
    index = np.array([2, 5, 2, 20], np.int64)
    data = TABLE[:4]
    lookup, extents = rows(index, OutOfRange.DROP)
    buffers = (
        Buffer("data", 0, type_of(data), Role.INPUT),
        Buffer("index", 4096, type_of(index), Role.INPUT),
        Buffer("out", 8192, type_of(TABLE), Role.OUTPUT),
    )
    out = Operand(Region(DRAM, Address(8192), F32, (0, 4)), (lookup,))
    steps = (
        load_index(index),
        Transfer(1, 0, extents, Operand(dense(DRAM, 0, F32, extents)), Operand(dense(SRAM, 0, F32, extents))),
        Transfer(2, 0, extents, Operand(dense(SRAM, 0, F32, extents)), out, (Wait(0), Wait(1))),
    )
    found = run(buffers, steps, [data, index])
    assert np.array_equal(found[2], data[2])
    assert np.array_equal(found[5], data[1])
    assert np.isnan(np.delete(found, [2, 5], axis=0)).all()


def test_packed_rows_are_copied_whole():
    x = np.array([[-8, 7, 3], [1, -1, 2]], I4.dtype)
    buffers = Buffer("x", 0, type_of(x), Role.INPUT), Buffer("y", 4096, type_of(x), Role.OUTPUT)
    packed = Operand(Region(SRAM, Address(0), I4, (2, 1)))
    steps = (
        Transfer(0, 0, (2, 3), Operand(Region(DRAM, Address(0), I4, (2, 1))), packed),
        Transfer(1, 0, (2, 3), packed, Operand(Region(DRAM, Address(4096), I4, (2, 1))), (Wait(0),)),
    )
    assert run(buffers, steps, [x]).astype(int).tolist() == x.astype(int).tolist()
