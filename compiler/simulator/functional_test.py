"""Programs on data: tiles, windows, types, poison, and what a missing dependency does to the numbers."""

from dataclasses import replace

import numpy as np
import pytest

from compiler.errors import InvalidInput, InvalidProgram
from compiler.ir import BF16, F16, F32, I8, I32, U8, UNKNOWN_LOCATION, tensor
from compiler.ops.work import Apply, Arg
from compiler.program import verify_program
from compiler.program.executable import Buffer, Kernel, Program, Role
from compiler.program.handmade_test import DRAM, SRAM, dense, executable, matmul_program, without_waits
from compiler.program.instructions import Address, Matmul, Operand, Region, Repeat, Transfer, Vector, Wait
from compiler.simulator import Machine, SimulationOptions, execute
from compiler.simulator.memory import poisoned
from compiler.targets import load_target

TARGET = load_target("reference-npu")


def draw(shape, element, seed=0):
    rng = np.random.default_rng(seed)
    if element.is_integer:
        low = -128 if element is I8 else 0
        return rng.integers(low, low + 256, shape).astype(element.dtype)
    return rng.standard_normal(shape).astype(element.dtype)


@pytest.mark.parametrize(
    ("element", "accumulator"), [(F32, F32), (F16, F32), (BF16, F32), (I8, I32), (U8, I32)], ids=str
)
@pytest.mark.parametrize("options", [SimulationOptions(), SimulationOptions(overlap=False)], ids=["overlap", "in-turn"])
def test_a_tiled_matmul_gives_the_product(element, accumulator, options):
    a, b = draw((96, 33), element), draw((33, 20), element, 1)
    program = matmul_program(96, 20, 33, 16, element, accumulator)
    verify_program(program, TARGET)
    (found,) = Machine(executable(program), options=options).execute([a, b])
    expected = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    assert found.dtype == accumulator.dtype
    tolerance = 0 if element.is_integer else 33 * 2.0**-24
    assert np.all(np.abs(found - expected) <= tolerance * scale)


def test_infinite_bandwidth_changes_times_and_not_numbers():
    a, b = draw((96, 33), F32), draw((33, 20), F32, 1)
    run = executable(matmul_program(96, 20, 33, 16))
    fast = Machine(run, options=SimulationOptions(infinite_bandwidth=True)).simulate([a, b])
    slow = Machine(run).simulate([a, b])
    assert fast.cycles < slow.cycles
    assert np.array_equal(fast.outputs[0], slow.outputs[0])


def test_constants_and_inputs_are_mapped_and_outputs_are_new():
    weights = draw((33, 20), F32, 1)
    machine = Machine(executable(matmul_program(96, 20, 33, 16, weights=weights)))
    a = draw((96, 33), F32)
    before = a.copy()
    (first,) = machine.execute([a])
    (second,) = machine.execute([a + 1])
    assert np.array_equal(a, before)
    assert not np.array_equal(first, second)
    np.testing.assert_allclose(first, a @ weights, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("number", [2, 3])
def test_a_missing_wait_is_a_wrong_number_and_refused_by_the_verifier(number):
    a, b = draw((96, 33), F32), draw((33, 20), F32, 1)
    broken = without_waits(matmul_program(96, 20, 33, 16), number)
    (found,) = execute(executable(broken), [a, b])
    assert not np.allclose(found, a @ b, rtol=1e-3, atol=1e-3)
    with pytest.raises(InvalidProgram, match=r"transfer \d .*(reads|writes) bytes .* in no fixed order"):
        verify_program(broken, TARGET)


def test_a_buffer_overwritten_too_early_is_a_wrong_number():
    # Slow compute against fast loads: without the wait, a load overwrites the tile that is being multiplied.
    target = "systolic-2x2-os-ideal"
    a, b = draw((96, 33), F32), draw((33, 20), F32, 1)
    program = matmul_program(96, 20, 33, 16, target=target)
    (right,) = execute(executable(program), [a, b])
    np.testing.assert_allclose(right, a @ b, rtol=1e-4, atol=1e-4)
    (wrong,) = execute(executable(without_waits(program, 1)), [a, b])
    assert not np.allclose(wrong, a @ b, rtol=1e-3, atol=1e-3)


def change(program, number, edit):
    def visit(step):
        if isinstance(step, Repeat):
            return replace(step, body=tuple(visit(inner) for inner in step.body))
        return edit(step) if step.id == number else step

    return replace(program, body=tuple(visit(step) for step in program.body))


@pytest.mark.parametrize("shift", [4, 64, -4, 512])
def test_a_shifted_address_is_a_wrong_number(shift):
    a, b = draw((96, 33), F32), draw((33, 20), F32, 1)

    def edit(step):
        region = step.b
        return replace(step, b=replace(region, address=Address(region.address.base + shift)))

    program = matmul_program(96, 20, 33, 16)
    if shift < 0:
        with pytest.raises(InvalidProgram, match=r"matmul 2 of program 'by-hand': bytes -4\.\."):
            execute(executable(change(program, 2, edit)), [a, b])
        return
    (found,) = execute(executable(change(program, 2, edit)), [a, b])
    assert not np.allclose(found, a @ b, rtol=1e-3, atol=1e-3)


def test_a_tile_bound_that_is_too_small_leaves_poison():
    a, b = draw((96, 33), F32), draw((33, 20), F32, 1)
    program = change(matmul_program(96, 20, 33, 16), 2, lambda step: replace(step, m=(15,)))
    (found,) = execute(executable(program), [a, b])
    assert np.isnan(found).any()


def test_poison_is_nan_in_every_float_and_no_small_integer():
    for dtype in (np.float16, BF16.dtype, np.float32):
        assert np.isnan(poisoned(64).view(dtype).astype(np.float64)).all()
    for dtype in (np.int16, np.int32, np.int64):
        assert (np.abs(poisoned(64).view(dtype).astype(np.float64)) > 80).all()


def test_reading_what_nothing_wrote_is_poison():
    program = matmul_program(32, 20, 33, 16)
    skipped = replace(program, body=program.body[1:])
    skipped = change(skipped, 2, lambda step: replace(step, waits=step.waits[1:]))
    (found,) = execute(executable(skipped), [draw((32, 33), F32), draw((33, 20), F32)])
    assert np.isnan(found).all()


def test_addresses_outside_of_a_buffer_are_refused_with_the_instruction():
    program = matmul_program(96, 20, 33, 16)
    longer = replace(program, body=(program.body[0], replace(program.body[1], count=7)))
    with pytest.raises(InvalidProgram, match=r"transfer 1 of program 'by-hand': bytes \d+\.\.\d+ of DRAM"):
        execute(executable(longer), [draw((96, 33), F32), draw((33, 20), F32)])
    smaller = replace(program, sram_bytes=1000)
    with pytest.raises(InvalidProgram, match=r"of SRAM; expected within 0\.\.999"):
        execute(executable(smaller), [draw((96, 33), F32), draw((33, 20), F32)])


def test_writing_an_input_is_refused():
    program = matmul_program(96, 20, 33, 16)

    def edit(step):
        region = replace(step.destination.region, address=Address(0))
        return replace(step, destination=Operand(region))

    with pytest.raises(InvalidProgram, match=r"in input or constant 'a', which is read-only"):
        execute(executable(change(program, 3, edit)), [draw((96, 33), F32), draw((33, 20), F32)])


def test_inputs_of_another_shape_or_type_are_refused():
    run = executable(matmul_program(96, 20, 33, 16))
    with pytest.raises(InvalidInput, match=r"buffer 'a' is given float32\[95, 33\]; expected tensor<96x33xf32>"):
        execute(run, [draw((95, 33), F32), draw((33, 20), F32)])
    with pytest.raises(InvalidInput, match="float16"):
        execute(run, [draw((96, 33), F16), draw((33, 20), F32)])
    with pytest.raises(InvalidInput, match="1 inputs given; expected 2"):
        execute(run, [draw((96, 33), F32)])


def whole(name, address, array_type, role):
    return Buffer(name, address, array_type, role)


def single(matmul, a, b, out_type):
    """Load a and b whole, run ``matmul`` on SRAM addresses 0 and 64k, store from 128k."""
    types = tensor(F32, a.shape), tensor(F32, b.shape), out_type
    buffers = tuple(
        whole(name, place, type_, role)
        for name, place, type_, role in zip(
            "abc", (0, 1 << 20, 1 << 21), types, (Role.INPUT, Role.INPUT, Role.OUTPUT), strict=True
        )
    )
    steps = []
    for index, (place, type_) in enumerate(zip((0, 1 << 16), types, strict=False)):
        sizes = type_.shape
        source = Operand(dense(DRAM, index << 20, F32, sizes))
        steps.append(Transfer(index, 0, sizes, source, Operand(dense(SRAM, place, F32, sizes))))
    steps.append(replace(matmul, id=2, waits=(Wait(0), Wait(1))))
    sizes = out_type.shape
    store = Operand(dense(SRAM, 1 << 17, F32, sizes)), Operand(dense(DRAM, 1 << 21, F32, sizes))
    steps.append(Transfer(3, 0, sizes, *store, (Wait(2),)))
    kernel = Kernel("k", ("conv",), UNKNOWN_LOCATION, 0, 0, 0)
    program = Program("single", "reference-npu", buffers, (kernel,), tuple(steps), 1 << 22, 1 << 18)
    verify_program(program, TARGET)
    (found,) = execute(executable(program), [a, b])
    return found


@pytest.mark.parametrize("stride", [1, 2])
def test_convolution_windows_are_overlapping_strides(stride):
    channels, size, filters, kernel = 5, 11, 7, 3
    out = (size - kernel) // stride + 1
    x, w = draw((channels, size, size), F32), draw((filters, channels, kernel, kernel), F32, 1)
    row = size * 4
    a = Region(SRAM, Address(0), F32, (stride * row, stride * 4, size * row, row, 4))
    b = Region(SRAM, Address(1 << 16), F32, (kernel * kernel * 4, kernel * 4, 4, channels * kernel * kernel * 4))
    c = Region(SRAM, Address(1 << 17), F32, (out * 4, 4, out * out * 4))
    step = Matmul(0, 0, (), (out, out), (filters,), (channels, kernel, kernel), a, b, c)
    found = single(step, x, w, tensor(F32, (filters, out, out)))
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (kernel, kernel), (1, 2))
    expected = np.einsum("chwij,fcij->fhw", windows[:, ::stride, ::stride], w)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_batches_and_transposed_factors():
    a, b = draw((3, 6, 8), F32), draw((3, 5, 8), F32, 1)
    left = Region(SRAM, Address(0), F32, (192, 32, 4))
    right = Region(SRAM, Address(1 << 16), F32, (160, 4, 32))
    out = Region(SRAM, Address(1 << 17), F32, (120, 20, 4))
    step = Matmul(0, 0, (3,), (6,), (5,), (8,), left, right, out)
    found = single(step, a, b, tensor(F32, (3, 6, 5)))
    np.testing.assert_allclose(found, a @ b.transpose(0, 2, 1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("element", [F32, I8], ids=str)
def test_accumulating_over_k_adds_to_what_is_there(element):
    accumulator = F32 if element is F32 else I32
    a, b = draw((16, 64), element), draw((64, 20), element, 1)
    program = matmul_program(16, 20, 64, 16, element, accumulator)
    size = element.bits // 8
    load_b, loop = program.body
    load_a, multiply, store = loop.body
    halves = []
    for half in range(2):
        left = replace(
            multiply.a, address=Address(multiply.a.address.base + half * 32 * size, (), multiply.a.address.rotations)
        )
        right = replace(multiply.b, address=Address(multiply.b.address.base + half * 32 * 20 * size))
        wait = (Wait(0), Wait(1), Wait(3, 1))
        halves.append(replace(multiply, id=4 + half, k=(32,), a=left, b=right, accumulate=half > 0, waits=wait))
    store = replace(store, waits=(Wait(5),))
    load_a = replace(load_a, waits=(Wait(5, 1),))
    program = replace(program, body=(load_b, Repeat(1, (load_a, *halves, store))))
    verify_program(program, TARGET)
    (found,) = execute(executable(program), [a, b])
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 if element is F32 else 0)


def test_int32_accumulators_wrap():
    a, b = np.full((16, 1 << 12), 127, np.int8), np.full((1 << 12, 4), 127, np.int8)
    program = matmul_program(16, 4, 1 << 12, 16, I8, I32)
    steps = program.body[1].body
    again = replace(steps[1], id=7, accumulate=True, waits=(Wait(2),))
    repeated = Repeat(40, (again,))
    store = replace(steps[2], waits=(Wait(7),))
    body = (program.body[0], Repeat(1, (steps[0], steps[1], repeated, store)))
    (found,) = execute(executable(replace(program, body=body)), [a, b])
    exact = 41 * (1 << 12) * 127 * 127
    assert exact > 2**31
    assert (found == (exact + 2**31) % 2**32 - 2**31).all()


@pytest.mark.parametrize("element", [I8, U8], ids=str)
def test_long_integer_sums_are_exact(element):
    a, b = draw((16, 4099), element), draw((4099, 5), element, 1)
    (found,) = execute(executable(matmul_program(16, 5, 4099, 16, element, I32)), [a, b])
    assert np.array_equal(found, a.astype(np.int64) @ b.astype(np.int64))


SIZE = 4096
FLAT = tensor(F32, (SIZE,))


def moments(*steps):
    """Inputs x and y (4096 floats) in DRAM, an output z; SRAM holds three such arrays: R, S and T."""
    names = (("x", Role.INPUT), ("y", Role.INPUT), ("z", Role.OUTPUT))
    buffers = tuple(Buffer(name, index << 16, FLAT, role) for index, (name, role) in enumerate(names))
    kernel = Kernel("k", (), UNKNOWN_LOCATION, 0, 0, 0)
    program = Program("moments", "reference-npu", buffers, (kernel,), steps, 3 << 16, 3 << 14)
    x, y = draw((SIZE,), F32), draw((SIZE,), F32, 1)
    return x, y, execute(executable(program), [x, y])[0]


def move(number, buffer, place, *waits, inward=True):
    ends = Operand(dense(DRAM, buffer << 16, F32, (SIZE,))), Operand(dense(SRAM, place << 14, F32, (SIZE,)))
    return Transfer(number, 0, (SIZE,), *(ends if inward else ends[::-1]), waits)


def compute(number, source, result, *waits, functions=1):
    body = Arg(0, F32)
    for _ in range(functions):
        body = Apply("tanh", (body,), F32)
    ends = (Operand(dense(SRAM, place << 14, F32, (SIZE,))) for place in (source, result))
    return Vector(number, 0, (SIZE,), (next(ends),), body, next(ends), waits=waits)


def test_operands_are_read_when_an_instruction_starts():
    # y arrives in R while the vector unit is still at work on x, which it read before.
    x, _, z = moments(
        move(0, 0, 0), compute(1, 0, 1, Wait(0), functions=9), move(2, 1, 0), move(3, 2, 1, Wait(1), inward=False)
    )
    expected = x.astype(np.float64)
    for _ in range(9):
        expected = np.tanh(expected)
    np.testing.assert_allclose(z, expected, rtol=1e-5)


def test_results_are_there_only_when_an_instruction_has_ended():
    # The last vector instruction starts while x is still on its way to R: it reads poison.
    short = [replace(compute(number, 2, 2), extents=(64,)) for number in (1, 2)]
    _, _, z = moments(move(0, 0, 0), *short, compute(3, 0, 1), move(4, 2, 1, Wait(3), inward=False))
    assert np.isnan(z).all()
