"""Random small programs, for properties of timing, text form and verifier."""

from hypothesis import strategies as st

from compiler.ir import BF16, F16, F32, I8, I32, I64, Constant, at, tensor
from compiler.ops.work import Apply, Arg, Combiner, Literal, OutOfRange, Position
from compiler.program.executable import Buffer, Kernel, Program, Role
from compiler.program.instructions import (
    Address,
    Lookup,
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

PRODUCTS = ((F32, F32, F32), (F16, F16, F32), (BF16, BF16, F32), (I8, I8, I32))
SIZES = st.integers(1, 70)


@st.composite
def addresses(draw, depth):
    levels = st.integers(0, depth - 1) if depth else st.nothing()
    terms = draw(st.lists(st.tuples(levels, st.integers(-64, 4096)), max_size=depth and 2))
    rotations = draw(
        st.lists(st.builds(Rotation, levels, st.integers(1, 3), st.integers(0, 4096)), max_size=depth and 1)
    )
    return Address(draw(st.integers(0, 1 << 20)), tuple(terms), tuple(rotations))


def region(draw, memory, element, rank, depth):
    strides = tuple(draw(st.lists(st.integers(-8, 512), min_size=rank, max_size=rank)))
    return Region(memory, draw(addresses(depth)), element, strides)


def operand(draw, memory, element, rank, depth):
    lookups = ()
    fill = None
    if draw(st.integers(0, 5)) == 0:
        index = region(draw, Memory.SRAM, draw(st.sampled_from([I32, I64])), rank, depth)
        rule = draw(st.sampled_from(list(OutOfRange)))
        lookups = (Lookup(index, draw(st.integers(1, 64)), draw(st.integers(1, 99)), rule),)
        fill = draw(st.none() | st.sampled_from([0, -1, True, 1.5, float("inf"), -0.0]))
    return Operand(region(draw, memory, element, rank, depth), lookups, fill)


@st.composite
def bodies(draw, inputs, rank):
    leaves = [Arg(index, F32) for index in range(inputs)] + [
        Literal(draw(st.sampled_from([0, 1.5, -0.0, float("-inf")])), F32)
    ]
    if rank:
        leaves.append(
            Position(draw(st.integers(0, rank - 1)), F32, draw(st.sampled_from([1, 2.5])), draw(st.integers(-3, 3)))
        )
    nodes = list(leaves)
    for _ in range(draw(st.integers(0, 5))):
        pick = st.sampled_from(nodes)
        name, count = draw(st.sampled_from([("add", 2), ("exp", 1), ("select", 3), ("and", 2), ("not", 1), ("div", 2)]))
        nodes.append(Apply(name, tuple(draw(pick) for _ in range(count)), F32))
    return nodes[-1]


@st.composite
def instructions(draw, number, ids, depth, kernels):
    waits = tuple(draw(st.lists(st.builds(Wait, st.integers(0, ids - 1), st.integers(0, 2)), max_size=3)))
    kernel = draw(st.integers(0, kernels - 1))
    kind = draw(st.integers(0, 3))
    if kind <= 1:
        extents = tuple(draw(st.lists(SIZES, min_size=1, max_size=3)))
        element = draw(st.sampled_from([F32, BF16, I8]))
        sides = [operand(draw, memory, element, len(extents), depth) for memory in (Memory.DRAM, Memory.SRAM)]
        return Transfer(number, kernel, extents, *(sides if kind else sides[::-1]), waits)
    if kind == 2:
        a, b, out = draw(st.sampled_from(PRODUCTS))
        groups = [tuple(draw(st.lists(SIZES, min_size=low, max_size=2))) for low in (0, 1, 1, 1)]
        batch, m, n, k = map(len, groups)
        ranks = batch + m + k, batch + k + n, batch + m + n
        regions = [
            region(draw, Memory.SRAM, element, rank, depth) for element, rank in zip((a, b, out), ranks, strict=True)
        ]
        return Matmul(number, kernel, *groups, *regions, draw(st.booleans()), waits)
    extents = tuple(draw(st.lists(SIZES, min_size=1, max_size=3)))
    inputs = tuple(operand(draw, Memory.SRAM, F32, len(extents), depth) for _ in range(draw(st.integers(0, 2))))
    reduced = draw(st.integers(0, len(extents)))
    out = operand(draw, Memory.SRAM, F32, len(extents) - reduced, depth)
    return Vector(
        number, kernel, extents, inputs, draw(bodies(len(inputs), len(extents))), out, reduced,
        draw(st.sampled_from(list(Combiner))) if reduced else None, draw(st.none() | st.sampled_from([0, 0.0, True])),
        draw(st.none() | st.just(F32)),
        origin=tuple(draw(addresses(depth)) for _ in extents) if draw(st.booleans()) else (),
        waits=waits,
    )  # fmt: skip


@st.composite
def programs(draw, most_trips=40):
    """A program of some instructions in nested repeats; its addresses mean nothing, its times and text do."""
    ids = draw(st.integers(1, 7))
    kernels = draw(st.integers(1, 3))

    def body(numbers, depth):
        steps = []
        while numbers:
            if depth < 3 and draw(st.integers(0, 2)) == 0:
                count = draw(st.integers(1, len(numbers)))
                steps.append(Repeat(draw(st.integers(1, most_trips)), body(numbers[:count], depth + 1)))
                numbers = numbers[count:]
            else:
                steps.append(draw(instructions(numbers[0], ids, depth, kernels)))
                numbers = numbers[1:]
        return tuple(steps)

    names = tuple(Kernel(f"k{i}", ("conv", "add"), at(f"n\n\"{i}'", "Conv", "f.onnx"), i, 2, 3) for i in range(kernels))
    buffers = (
        Buffer("x'\\ü", 0, tensor(F32, (2, 3)), Role.INPUT),
        Buffer("w", 64, tensor(BF16, (5,)), Role.CONSTANT, Constant.abstract(tensor(BF16, (5,)), 7)),
    )
    steps = body(list(range(ids)), 0)
    return Program(draw(st.text(max_size=5)), "reference-npu", buffers, names, steps, 1 << 24, 1 << 21)
