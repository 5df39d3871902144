"""Allocations that live together never share a byte, and the peak comes near to the bytes that live at one time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compiler.lowering.packing import Allocation, live_bytes, pack

ALLOCATIONS = st.lists(
    st.builds(
        lambda size, start, length: Allocation(64 * size, start, start + length),
        st.integers(1, 50),
        st.integers(0, 30),
        st.integers(0, 12),
    ),
    max_size=60,
)


@given(ALLOCATIONS)
def test_no_two_that_live_together_share_a_byte(allocations: list[Allocation]) -> None:
    packing = pack(allocations)
    for index, one in enumerate(allocations):
        assert one.address % 64 == 0
        assert one.address >= 0
        assert one.address + one.size <= packing.peak
        for other in allocations[:index]:
            apart = one.end < other.start or other.end < one.start
            below = one.address + one.size <= other.address or other.address + other.size <= one.address
            assert apart or below


@given(ALLOCATIONS)
def test_bound_is_the_most_that_lives_at_one_time(allocations: list[Allocation]) -> None:
    times = range(50)
    most = max((sum(one.size for one in allocations if one.start <= time <= one.end) for time in times), default=0)
    assert live_bytes(allocations) == most
    assert pack(allocations).peak >= most


def test_alternating_blocks_beside_a_lasting_tensor_reach_the_bound() -> None:
    blocks = [Allocation(64 * (1 + index % 5), index, index + 1) for index in range(20)]
    packing = pack([Allocation(640, 0, 20), *blocks])
    assert packing.peak == packing.bound == 640 + 64 * 9


def test_nothing_takes_nothing() -> None:
    packing = pack([])
    assert (packing.peak, packing.bound) == (0, 0)
