"""The kinds of generated faults, and every place of a module where one of them can be made.

Texts, annotations, assertions, raised messages and decorators of data classes are left alone: a fault there changes no
meaning.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from conformance.mutation.edits import ROOT, Edit, Fault

_FLIPPED: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_SWAPPED: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
}


@dataclass(frozen=True, slots=True)
class Site:
    """A node, what takes its place, and the kind of fault that this is."""

    node: ast.AST
    text: str
    kind: str
    lines: tuple[int, ...]


def _constants(node: ast.AST) -> Iterator[tuple[str, str]]:
    if not isinstance(node, ast.Constant):
        return
    value = node.value
    if isinstance(value, bool):
        yield "flag", repr(not value)
    elif isinstance(value, int):
        yield "constant", repr(value + 1)
    elif isinstance(value, float):
        yield "constant", repr(value * 2 if value else 1.0)


def _comparisons(node: ast.AST) -> Iterator[tuple[str, str]]:
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return
    for flipped in _FLIPPED[type(node.ops[0])]:
        changed = ast.Compare(node.left, [flipped()], node.comparators)
        pair = (type(node.ops[0]), flipped)
        boundary = pair in ((ast.Lt, ast.LtE), (ast.LtE, ast.Lt), (ast.Gt, ast.GtE), (ast.GtE, ast.Gt))
        yield "boundary" if boundary else "comparison", f"({ast.unparse(changed)})"


def _arithmetic(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.BinOp) and type(node.op) in _SWAPPED:
        yield "arithmetic", f"({ast.unparse(ast.BinOp(node.left, _SWAPPED[type(node.op)](), node.right))})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield "sign", ast.unparse(node.operand)


def _logic(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "logic", f"({ast.unparse(ast.BoolOp(other, node.values))})"


def _keywords(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Call):
        for dropped in (keyword for keyword in node.keywords if keyword.arg not in _INVARIANTS):
            rest = [keyword for keyword in node.keywords if keyword is not dropped]
            yield "keyword", ast.unparse(ast.Call(node.func, node.args, rest))


def _slices(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Slice):
        if node.lower is not None and not isinstance(node.lower, ast.Constant):
            yield "slice", ast.unparse(ast.Slice(_one_more(node.lower), node.upper, node.step))
        if node.upper is not None and not isinstance(node.upper, ast.Constant):
            yield "slice", ast.unparse(ast.Slice(node.lower, _one_more(node.upper), node.step))


def _one_more(value: ast.expr) -> ast.expr:
    return ast.BinOp(value, ast.Add(), ast.Constant(1))


_KINDS: tuple[Callable[[ast.AST], Iterator[tuple[str, str]]], ...] = (
    _constants,
    _comparisons,
    _arithmetic,
    _logic,
    _keywords,
    _slices,
)
_LEFT_ALONE = (ast.JoinedStr, ast.Assert, ast.Raise, ast.Import, ast.ImportFrom, ast.AnnAssign)
_INVARIANTS = frozenset({None, "strict", "doc", "encoding"})
"""Keywords without a meaning of their own: assertions, as in zip(..., strict=True), documentation, and the encoding of
texts, which is that of the locale too where tests run; None is `**rest`."""
_TEXTUAL_METHODS = frozenset({"__repr__", "__str__", "describe", "summary"})


def sites(tree: ast.Module) -> Iterator[Site]:
    """Yield every place for a fault, in the order of the source."""
    yield from _inside(tree, ())


def _inside(node: ast.AST, lines: tuple[int, ...]) -> Iterator[Site]:
    for child in _children(node):
        own = _lines_of(child) if isinstance(child, ast.stmt) else lines
        if isinstance(child, ast.expr | ast.Slice):
            for make in _KINDS:
                for kind, text in make(child):
                    yield Site(child, text, kind, own)
        yield from _inside(child, own)


def _lines_of(statement: ast.stmt) -> tuple[int, ...]:
    """Return the lines of a simple statement, or those of the head of a compound one."""
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return tuple(range(statement.lineno, max(last, statement.lineno) + 1))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a fault may stand in."""
    if isinstance(node, ast.AnnAssign):
        if node.value is not None:
            yield node.value
        return
    if isinstance(node, ast.keyword) and node.arg in _INVARIANTS:
        return
    if isinstance(node, ast.FunctionDef):
        yield from (default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None)
        yield from (part for part in node.body if _matters(part))
        return
    if isinstance(node, ast.ClassDef):
        yield from (part for part in node.body if _matters(part))
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield from (child for child in ast.iter_child_nodes(node) if _matters(child))


def _matters(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name not in _TEXTUAL_METHODS
    return not isinstance(node, _LEFT_ALONE) or isinstance(node, ast.AnnAssign)


def faults_in(path: str) -> list[Fault]:
    """Return every fault that can be generated in a module; ids say file:line:column:kind."""
    data = (ROOT / path).read_bytes()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[str, Fault] = {}
    for site in sites(ast.parse(data)):
        node: ast.expr = site.node  # type: ignore[assignment]  # slices have places too
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        identity = f"{path}:{node.lineno}:{node.col_offset}:{site.kind}"
        number = 2
        while identity in found:
            identity = f"{path}:{node.lineno}:{node.col_offset}:{site.kind}{number}"
            number += 1
        found[identity] = Fault(identity, path, (Edit(start, end, site.text),), site.lines, site.kind)
    return list(found.values())


def is_fault(fault: Fault) -> bool:
    """Return whether the faulty source is still Python, and differs in more than spelling."""
    try:
        return ast.dump(ast.parse(fault.source())) != ast.dump(ast.parse((ROOT / fault.path).read_bytes()))
    except SyntaxError:
        return False
