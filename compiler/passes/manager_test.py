"""The manager: order, dumps, timings, checks after each pass, reproducers and bisection."""

import json
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from compiler.errors import InvalidGraph, NumericChange, OpatlasError
from compiler.ir import F32, Builder, Graph, at, graphs_equal, print_graph, tensor
from compiler.ops import lookup
from compiler.ops.elementwise import Abs, Add, Neg
from compiler.ops.interpreter import interpret
from compiler.passes.canonicalize import Canonicalize
from compiler.passes.dead_code import DeadCode
from compiler.passes.manager import (
    Instruments,
    Pass,
    PassResult,
    bisect,
    read_reproducer,
    run_passes,
)


@dataclass(frozen=True)
class NegToAbs(Pass):
    """Wrong on purpose: negations become magnitudes, but the first ``skip`` stay."""

    skip: int = 0
    name = "neg_to_abs"

    def run(self, graph, counter):
        hits = Counter()
        for op in [op for op in graph.ops if isinstance(op.definition, Neg)][self.skip :]:
            if not counter.allow("neg_to_abs", op):
                break
            op.result.replace_with(Builder(graph, op, op.location)(Abs, op.operand(0)))
            op.erase()
            hits["neg_to_abs"] += 1
        return PassResult(bool(hits), hits)


@dataclass(frozen=True)
class BreakUses(Pass):
    name = "break_uses"

    def run(self, graph, counter):
        graph.inputs[0].users.clear()
        return PassResult(True)


@dataclass(frozen=True)
class Refuse(Pass):
    name = "refuse"

    def run(self, graph, counter):
        raise OpatlasError("no")


def graph():
    built = Graph("main", [tensor(F32, (2,))], ["x"])
    build = Builder(built)
    value = built.inputs[0]
    weight = build.constant(np.arange(40, dtype=np.float32)[:2])
    for index in range(3):
        build.location = at(f"n{index}", "Neg")
        value = build(Add, build(Neg, value), weight)
    build(Abs, value)
    build.output(value)
    return built


def test_timings_and_hits_are_reported_in_order():
    report = run_passes(graph(), [DeadCode(), Canonicalize(), DeadCode()])
    entries = json.loads(report.to_json())
    assert [entry["pass"] for entry in entries] == ["dead_code", "canonicalize", "dead_code"]
    assert [entry["modified"] for entry in entries] == [True, True, False]
    assert entries[0]["operations_before"] - entries[0]["operations_after"] == 1
    assert report.hits["add_negated"] == 3
    assert all(entry["ms"] >= 0 for entry in entries)


def test_ir_is_dumped_after_each_change_only(tmp_path):
    run_passes(graph(), [DeadCode(), DeadCode(), Canonicalize()], Instruments(dump_dir=tmp_path / "a" / "b"))
    assert [path.name for path in sorted((tmp_path / "a" / "b").iterdir())] == [
        "00-input.mlir",
        "01-dead_code.mlir",
        "02-canonicalize.mlir",
    ]
    assert (tmp_path / "a" / "b" / "00-input.mlir").read_text() == print_graph(graph())


def test_verifier_after_each_pass_names_the_pass():
    with pytest.raises(InvalidGraph, match=r"records 0 uses.*\(pass 'break_uses'\)"):
        run_passes(graph(), [BreakUses()], Instruments(verify_each=True))


def test_numbers_are_held_to_the_class_of_the_pass():
    inputs = [np.array([1, 2], np.float32)]
    instruments = Instruments(evaluate=lambda g: interpret(g, inputs))
    run_passes(graph(), [Canonicalize(), DeadCode()], instruments)
    with pytest.raises(NumericChange, match=r"output 0 changed by more than 'exact' allows.*\(pass 'neg_to_abs'\)"):
        run_passes(graph(), [DeadCode(), NegToAbs()], instruments)


def test_a_failing_pass_leaves_a_reproducer(tmp_path):
    large = graph()
    Builder(large, large.last).constant(np.arange(100, dtype=np.float32))
    with pytest.raises(OpatlasError, match=r"no \(pass 'refuse'\)"):
        run_passes(large, [Refuse()], Instruments(reproducer_dir=tmp_path))
    path = tmp_path / "refuse.mlir"
    assert path.read_text().splitlines()[:2] == ["// error: no", "// passes: Refuse()"]
    assert graphs_equal(read_reproducer(path, lookup), large, locations=True)


@pytest.mark.parametrize(("skip", "number", "where"), [(0, 4, "n0"), (1, 4, "n1"), (2, 4, "n2"), (3, None, "")])
def test_bisect_finds_the_first_bad_rewrite(skip, number, where):
    start = graph()
    x = np.array([1, -2], np.float32)
    wanted = interpret(start, [x])[0]

    def is_good(candidate):
        return np.array_equal(interpret(candidate, [x])[0], wanted)

    # dead_code takes one rewrite; a doubled negation pair is built so that three exact rewrites come first.
    build = Builder(start, start.first)
    for _ in range(2):
        build(Abs, start.inputs[0])
    culprit = bisect(start, [DeadCode(), NegToAbs(skip)], is_good)
    assert (culprit.number if culprit else None) == number
    assert where in (culprit.description if culprit else "")
    assert sum(isinstance(op.definition, Neg) for op in start.ops) == 3
