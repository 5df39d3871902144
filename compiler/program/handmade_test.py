"""Programs lowered by hand, for the tests of simulator, text form and verifier."""

from dataclasses import replace

import numpy as np

from compiler.ir import F32, UNKNOWN_LOCATION, Constant, tensor
from compiler.ops.work import Arg
from compiler.program.executable import Block, Buffer, Executable, Kernel, Program, Role, Run
from compiler.program.instructions import (
    Address,
    Matmul,
    Memory,
    Operand,
    Region,
    Repeat,
    Rotation,
    Transfer,
    Vector,
    Wait,
)
from compiler.targets import load_target

DRAM, SRAM = Memory.DRAM, Memory.SRAM


def dense(memory, base, element, sizes, terms=(), rotations=()):
    """A dense row-major region."""
    strides, step = [], max(1, element.bits // 8)
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= size
    return Region(memory, Address(base, terms, rotations), element, tuple(strides))


def aligned(count, alignment=64):
    return -(-count // alignment) * alignment


def matmul_program(m, n, k, tile, element=F32, accumulator=F32, target="reference-npu", *, weights=None, waits=True):
    """c = a @ b with b resident, rows of a and c in tiles of ``tile`` through double buffers, one repeat."""
    assert m % tile == 0
    size, wide = element.bits // 8, accumulator.bits // 8
    types = tensor(element, (m, k)), tensor(element, (k, n)), tensor(accumulator, (m, n))
    constant = None if weights is None else Constant.of(weights)
    bytes_a, bytes_b, bytes_c = (aligned(type_.nbytes) for type_ in types)
    buffers = (
        Buffer("a", 0, types[0], Role.INPUT),
        Buffer("b", bytes_a, types[1], Role.INPUT if weights is None else Role.CONSTANT, constant),
        Buffer("c", bytes_a + bytes_b, types[2], Role.OUTPUT),
    )
    tile_a, tile_c = aligned(tile * k * size), aligned(tile * n * wide)
    place_a, place_c = bytes_b, bytes_b + 2 * tile_a

    def rotating(base, stride, sizes, kind):
        return dense(SRAM, base, kind, sizes, (), (Rotation(0, 2, stride),))

    sram_a, sram_c = rotating(place_a, tile_a, (tile, k), element), rotating(place_c, tile_c, (tile, n), accumulator)
    dram_a = dense(DRAM, 0, element, (tile, k), ((0, tile * k * size),))
    dram_c = dense(DRAM, bytes_a + bytes_b, accumulator, (tile, n), ((0, tile * n * wide),))
    load_b = Transfer(
        0, 0, (k, n), Operand(dense(DRAM, bytes_a, element, (k, n))), Operand(dense(SRAM, 0, element, (k, n)))
    )
    load_a = Transfer(1, 0, (tile, k), Operand(dram_a), Operand(sram_a), (Wait(2, 1),) if waits else ())
    multiply = Matmul(
        2, 0, (), (tile,), (n,), (k,), sram_a, dense(SRAM, 0, element, (k, n)), sram_c,
        waits=(Wait(0), Wait(1), Wait(3, 1)) if waits else (),
    )  # fmt: skip
    store = Transfer(3, 0, (tile, n), Operand(sram_c), Operand(dram_c), (Wait(2),) if waits else ())
    kernel = Kernel("matmul", ("matmul",), UNKNOWN_LOCATION, m * n * k, 0, sum(type_.nbytes for type_ in types))
    body = (load_b, Repeat(m // tile, (load_a, multiply, store)))
    dram = bytes_a + bytes_b + bytes_c
    return Program("by-hand", target, buffers, (kernel,), body, dram, place_c + 2 * tile_c)


def vector_program(inputs, extents, body, out_type, out, target="reference-npu", **parts):
    """One vector instruction: ``inputs`` are (array, strides or Operand maker) pairs, all moved to SRAM and back.

    ``out``: strides of the result in SRAM, or a function of its SRAM address that gives the Operand. The result buffer
    is loaded too when ``before`` is given, so that a combiner can continue from it.
    """
    before = parts.pop("before", None)
    buffers, steps, operands = [], [], []
    address = place = 0
    number = 0
    waits = []

    def load(array, base, to):
        nonlocal number
        bytes_ = array.nbytes
        steps.append(_copy(number, base, to, bytes_, inward=True))
        waits.append(Wait(number))
        number += 1

    for index, (array, strides) in enumerate(inputs):
        constant = Constant.of(array)
        buffers.append(Buffer(f"x{index}", address, constant.type, Role.INPUT))
        load(array, address, place)
        if callable(strides):
            operands.append(strides(place))
        else:
            operands.append(Operand(Region(SRAM, Address(place), constant.type.element, tuple(strides))))
        address, place = address + aligned(array.nbytes), place + aligned(array.nbytes)
    if before is not None:
        buffers.append(Buffer("before", address, out_type, Role.INPUT))
        load(before, address, place)
        address += aligned(before.nbytes)
    buffers.append(Buffer("y", address, out_type, Role.OUTPUT))
    result = out(place) if callable(out) else Operand(Region(SRAM, Address(place), out_type.element, tuple(out)))
    steps.append(Vector(number, 0, tuple(extents), tuple(operands), body, result, waits=tuple(waits), **parts))
    steps.append(_copy(number + 1, address, place, out_type.nbytes, inward=False, waits=(Wait(number),)))
    kernel = Kernel("vector", ("vector",), UNKNOWN_LOCATION, 0, 0, 0)
    dram, sram = address + aligned(out_type.nbytes), place + aligned(out_type.nbytes)
    return Program("by-hand", target, tuple(buffers), (kernel,), tuple(steps), dram, max(sram, 1))


def _copy(number, dram, sram, count, *, inward, waits=()):
    from compiler.ir import U8

    ends = Operand(Region(DRAM, Address(dram), U8, (1,))), Operand(Region(SRAM, Address(sram), U8, (1,)))
    source, destination = ends if inward else ends[::-1]
    return Transfer(number, 0, (count,), source, destination, waits)


def executable(program):
    """An executable that runs one program."""
    count_in = sum(buffer.role is Role.INPUT for buffer in program.buffers)
    count_out = sum(buffer.role is Role.OUTPUT for buffer in program.buffers)
    slots = tuple(range(count_in)), tuple(range(count_in, count_in + count_out))
    block = Block(slots[0], (Run(program, *slots),), slots[1])
    names = tuple(f"in{slot}" for slot in slots[0]), tuple(f"out{slot}" for slot in slots[1])
    return Executable(program.target, block, {}, {}, *names)


def one_matmul(m, n, k, target, element=F32, accumulator=F32, batch=()):
    """A program of a single matmul instruction (its operands are never loaded): for timing alone."""
    counts = (*batch, m, k), (*batch, k, n), (*batch, m, n)
    size = element.bits // 8
    sizes = [int(np.prod(shape)) * size for shape in counts]
    a, b = dense(SRAM, 0, element, counts[0]), dense(SRAM, sizes[0], element, counts[1])
    out = dense(SRAM, sizes[0] + sizes[1], accumulator, counts[2])
    multiply = Matmul(0, 0, batch, (m,), (n,), (k,), a, b, out)
    kernel = Kernel("matmul", ("matmul",), UNKNOWN_LOCATION, m * n * k, 0, 0)
    sram = sum(sizes) + int(np.prod(counts[2])) * accumulator.bits // 8
    return Program("one-matmul", load_target(target).name, (), (kernel,), (multiply,), 0, sram)


def without_waits(program, number):
    """The program with instruction ``number`` waiting for nothing."""

    def strip(step):
        if isinstance(step, Repeat):
            return replace(step, body=tuple(strip(inner) for inner in step.body))
        return replace(step, waits=()) if step.id == number else step

    return replace(program, body=tuple(strip(step) for step in program.body))


def copy_body(element):
    return Arg(0, element)
