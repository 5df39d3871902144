"""The IR beside xDSL: build, verify, print, parse and rewrite a chain of 10,000 operations, half of them x + 0.

Both run in this process, one after the other, on the same graph: x + 0 and x * 3 in turn over int32, which one rule
turns into the products alone. xDSL is the comparison because it is the infrastructure in Python that is nearest in
kind: SSA, MLIR's text form, a verifier, and a worklist driver of patterns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np

from benchmarks.measure import cpu_ms, publish

OPERATIONS = 10_000
GOAL = 3.0


@dataclass(frozen=True, slots=True)
class Subject:
    """One infrastructure: how it does each step. `build` makes the graph that all other steps start from."""

    build: Callable[[], Any]
    verify: Callable[[Any], object]
    text: Callable[[Any], str]
    parse: Callable[[str], Any]
    rewrite: Callable[[Any], object]
    count: Callable[[Any], int]


def our_subject(operations: int) -> Subject:
    """Return the steps in `compiler.ir` and `compiler.rewrite`."""
    from compiler.ir import I32, Builder, Graph, tensor
    from compiler.ir.parser import parse_graph
    from compiler.ir.printer import print_graph
    from compiler.ir.verifier import verify
    from compiler.ops import lookup
    from compiler.ops.elementwise import Add, Mul
    from compiler.rewrite import EXACT, Match, RuleSet, anything, constant, operation, rewrite, rule

    @rule(operation(Add, anything("x"), constant("zero")), EXACT)
    def add_zero(match: Match) -> Any:  # noqa: ANN401 - a value, as the rule's protocol has it
        match.require(match.array("zero").item() == 0, "the constant is not zero")
        return match["x"]

    rules = RuleSet([add_zero])

    def build() -> Graph:
        graph = Graph("main", [tensor(I32)], ["x"])
        builder = Builder(graph)
        zero, three = (builder.constant(np.array(number, np.int32)) for number in (0, 3))
        value = graph.inputs[0]
        for _ in range(operations // 2):
            value = builder(Mul, builder(Add, value, zero), three)
        builder.output(value)
        return graph

    return Subject(
        build=build,
        verify=verify,
        text=print_graph,
        parse=lambda text: parse_graph(text, lookup),
        rewrite=lambda graph: rewrite(graph, rules),
        count=lambda graph: sum(1 for op in graph.walk() if isinstance(op.definition, Add | Mul)),
    )


def xdsl_subject(operations: int) -> Subject:
    """Return the steps in xDSL."""
    from xdsl.context import Context
    from xdsl.dialects import arith, builtin, func
    from xdsl.ir import Block, Operation, Region
    from xdsl.parser import Parser
    from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern
    from xdsl.printer import Printer

    class AddZero(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            if not isinstance(op, arith.AddiOp):
                return
            owner: Any = op.rhs.owner
            constant_value: Any = owner.value if isinstance(owner, arith.ConstantOp) else None
            if constant_value is not None and constant_value.value.data == 0:
                rewriter.replace(op, [], [op.lhs])

    def build() -> Any:  # noqa: ANN401 - xDSL's ModuleOp
        block = Block(arg_types=[builtin.i32])
        zero, three = (arith.ConstantOp.from_int_and_width(number, builtin.i32) for number in (0, 3))
        block.add_ops([zero, three])
        value: Any = block.args[0]
        for _ in range(operations // 2):
            first = arith.AddiOp(value, zero.result)
            second = arith.MuliOp(first.result, three.result)
            block.add_ops([first, second])
            value = second.result
        block.add_op(func.ReturnOp(value))
        function = func.FuncOp("main", ([builtin.i32], [builtin.i32]), Region(block))
        return builtin.ModuleOp([function])

    def text(module: Any) -> str:  # noqa: ANN401 - xDSL's ModuleOp
        stream = StringIO()
        Printer(stream, print_generic_format=True).print_op(module)
        return stream.getvalue()

    def parse(source: str) -> Any:  # noqa: ANN401 - xDSL's ModuleOp
        context = Context()
        for dialect in (builtin.Builtin, arith.Arith, func.Func):
            context.load_dialect(dialect)
        return Parser(context, source).parse_module()

    return Subject(
        build=build,
        verify=lambda module: module.verify(),
        text=text,
        parse=parse,
        rewrite=lambda module: PatternRewriteWalker(AddZero()).rewrite_module(module),
        count=lambda module: sum(1 for op in module.walk() if isinstance(op, arith.AddiOp | arith.MuliOp)),
    )


def measure(subject: Subject, operations: int) -> dict[str, float]:
    """Return CPU milliseconds by step. Asserts that each step did its work: a fast wrong answer is no figure."""
    assert subject.count(subject.build()) == operations
    text = subject.text(subject.build())
    assert subject.count(subject.parse(text)) == operations
    rewritten = subject.build()
    subject.rewrite(rewritten)
    assert subject.count(rewritten) == operations // 2
    return {
        "build": cpu_ms(lambda _: subject.build(), lambda: None),
        "verify": cpu_ms(subject.verify, subject.build),
        "print": cpu_ms(subject.text, subject.build),
        "parse": cpu_ms(subject.parse, lambda: text),
        "rewrite": cpu_ms(subject.rewrite, subject.build),
    }


def main() -> None:
    """Measure both and publish the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=OPERATIONS)
    operations = parser.parse_args().operations
    theirs = measure(xdsl_subject(operations), operations)
    ours = measure(our_subject(operations), operations)
    rows = [
        {
            "step": step,
            "opatlas ms": f"{ours[step]:.1f}",
            "xDSL ms": f"{theirs[step]:.1f}",
            "times faster": f"{theirs[step] / ours[step]:.1f}",
        }
        for step in ours
    ]
    least = min(theirs[step] / ours[step] for step in ours)
    publish("ir", rows, {"operations": operations, "least ratio": round(least, 2), "goal": GOAL})


if __name__ == "__main__":
    main()
