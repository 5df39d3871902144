"""The reference names every operator, operand and attribute, and is well-formed Markdown."""

from __future__ import annotations

import re

import pytest

from compiler.ops import lookup, operators
from compiler.ops.document import describe, reference, signature, types_text, write_reference
from compiler.ops.registry import ANY, FLOAT, INTEGER, NUMERIC, REAL, STRINGS


@pytest.mark.parametrize("name", operators())
def test_every_operator_is_described(name):
    operator = operators()[name]
    text = describe(operator)
    assert text.startswith(f"### {name}\n")
    assert type(operator).__doc__, "a public docstring says what the operator means"
    for spec in (*operator.operands, *operator.attributes):
        assert f"`{spec.name}`" in text
    for table in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        columns = {len(re.findall(r"(?<!\\)\|", line)) for line in table.strip().splitlines()}
        assert len(columns) == 1, table


def test_signatures_show_what_is_optional_repeated_and_default():
    assert signature(lookup("clamp")) == "clamp(x, low?, high?)"
    assert signature(lookup("concat")) == "concat(x, ...; axis)"
    assert signature(lookup("gather")) == "gather(x, indices; axis=0)"
    assert signature(lookup("compress")) == "compress(x, condition; axis?)"


def test_sets_of_types_take_few_names():
    assert types_text(ANY) == "any"
    assert types_text(REAL) == "real"
    assert types_text(NUMERIC | STRINGS) == "numeric, string"
    assert types_text(FLOAT | {next(e for e in INTEGER if e.name == "i64")}) == "float, i64"


def test_facts_and_the_way_of_computing_are_shown():
    assert "Computed: structured loops. Facts: commutative, associative." in describe(lookup("add"))
    assert "Computed: evaluated on the host." in describe(lookup("nonzero"))
    assert "Computed: decomposes into simpler operators." in describe(lookup("reduce_mean"))
    assert "not pure" in describe(lookup("random_normal"))


def test_the_reference_is_whole_and_written(tmp_path):
    path = tmp_path / "deep" / "operators.md"
    write_reference(path)
    text = path.read_text(encoding="utf-8")
    assert text == reference()
    assert text.endswith("\n")
    assert [line[4:] for line in text.splitlines() if line.startswith("### ")] == [
        operator.name for operator in sorted(operators().values(), key=lambda operator: operator.family)
    ]
