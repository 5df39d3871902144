from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from generators.pairwise import Axis, Constraint, select

grids = st.lists(st.integers(1, 4), min_size=1, max_size=5)


def axes_of(sizes):
    return [Axis(f"a{index}", tuple(range(size))) for index, size in enumerate(sizes)]


def pairs_of(rows):
    return {
        (first, row[first], second, row[second]) for row in rows for first, second in combinations(range(len(row)), 2)
    }


@given(grids)
@settings(deadline=None)
def test_without_a_cap_every_pair_of_values_meets(sizes):
    rows = select(axes_of(sizes), [], 10_000)
    assert pairs_of(rows) == pairs_of(product(*(range(size) for size in sizes)))


@given(grids, st.integers(0, 6))
@settings(deadline=None)
def test_every_value_appears_whatever_the_cap(sizes, cap):
    rows = select(axes_of(sizes), [], cap)
    for axis, size in enumerate(sizes):
        assert {row[axis] for row in rows} == set(range(size))
    assert len(rows) <= max(cap, sum(sizes))


@given(grids, st.integers(0, 3), st.integers(0, 7))
@settings(deadline=None)
def test_with_a_constraint_every_possible_pair_meets_and_no_row_breaks_it(sizes, modulus, remainder):
    axes = axes_of(sizes)
    last = axes[-1].name

    def holds(names):
        return (names["a0"] + 2 * names[last]) % (modulus + 2) != remainder

    constraint = Constraint(frozenset({"a0", last}), holds)
    rows = select(axes, [constraint], 10_000)
    possible = [row for row in product(*(range(size) for size in sizes)) if holds({"a0": row[0], last: row[-1]})]
    assert set(rows) <= set(possible)
    assert pairs_of(rows) == pairs_of(possible)
    assert {row[0] for row in rows} == {row[0] for row in possible}


def test_the_choice_is_a_function_of_the_axes_alone():
    axes = axes_of([3, 4, 2, 3])
    assert select(axes, [], 9) == select(axes, [], 9)


def test_the_first_row_takes_first_values():
    assert select(axes_of([3, 4, 2]), [], 5)[0] == (0, 0, 0)


def test_few_rows_are_enough():
    assert len(select(axes_of([3, 3, 3, 3]), [], 10_000)) <= 14


def test_values_beyond_the_paired_ones_appear_once():
    rows = select([Axis("t", (0, 1, 2, 3), paired=2), Axis("s", (0, 1, 2))], [], 10_000)
    assert [row[0] for row in rows].count(3) == 1
    assert {row for row in rows if row[0] < 2} == set(product((0, 1), (0, 1, 2)))


def test_crossed_axes_meet_in_every_pair_whatever_the_cap():
    axes = [Axis("type", tuple("abcdef"), 2), Axis("data", (1, 2, 3)), Axis("mode", (True, False))]
    never = Constraint(frozenset({"type", "data"}), lambda names: (names["type"], names["data"]) != ("f", 3))
    rows = select(axes, [never], 1, [("type", "data")])
    assert {row[:2] for row in rows} == {(t, d) for t in "abcdef" for d in (1, 2, 3)} - {("f", 3)}
    assert len(rows) == 17
