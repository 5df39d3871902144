import pytest

from opsets.expressions import parse

NAMES = {"data": (3, 4, 5), "axis": -1, "axes": (0, 2), "other": (4, 1), "none": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-rank(data) <= axis < rank(data)", True),
        ("data[axis]", 5),
        ("size(data) // 2", 30),
        ("inside(axes, rank(data))", True),
        ("inside([0, -3], rank(data))", False),
        ("inside([3], 3)", False),
        ("inside(none, 3)", True),
        ("without(data, axes)", (4,)),
        ("at(data, axes)", (3, 5)),
        ("broadcast(data, other)", (3, 4, 5)),
        ("broadcast((3, 1), (1, 4))", (3, 4)),
        ("broadcast((3, 2), (4, 1, 3))", None),
        ("broadcast((0,), (1,))", (0,)),
        ("onto(other, (2, 4, 7))", True),
        ("fits(data, (4, 5), none)", True),
        ("fits(data, (3, 4), 0)", True),
        ("fits(data, (3, 4), none)", False),
        ("[dim for dim in data if dim > axis + 4]", [4, 5]),
        ("all(dim < data[0] + 3 for dim in data)", True),
        ("'a' if none is None else 'b'", "a"),
        ("bits('float16') + bits('bool')", 24),
        (
            "[least('int4'), greatest('int4'), greatest('uint2'), least('int64'), least('uint8'), greatest('bool')]",
            [-8, 7, 3, -100, 0, 100],
        ),
        ("[greatest('float4e2m1'), least('float8e8m0'), least('float16')]", [6, 1, -100]),
        ("is_float('bfloat16') and not is_float('int8')", True),
    ],
)
def test_expressions_mean_what_they_say(text, expected):
    assert parse(text)(NAMES) == expected


def test_free_names_are_known_before_evaluation():
    assert parse("all(dim < limit for dim in data) and rank(x) > 1").names == {"limit", "data", "x"}


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "data.__class__",
        "(lambda: 1)()",
        "open('x')",
        "axis := 3",
        "axis =",
        "data[0].real",
        "f'{axis}'",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match=r"no expression|not part of|unknown function"):
        parse(text)


def test_a_missing_name_is_named():
    with pytest.raises(ValueError, match="nothing"):
        parse("nothing + 1")({})


def test_a_name_that_is_also_a_function_is_read_where_it_is_not_called():
    assert parse("min is None or min(X) < min").names == {"min", "X"}
    assert parse("min(X) < 2").names == {"X"}
