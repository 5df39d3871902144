"""Constant folding: operations on constants become constants, where that does not grow the model.

1. A pure operation whose operands are all constants with data, and whose results are not larger than what the fold
   frees: the operands that nothing else uses, and the operation itself, worth SMALL bytes.
2. Sizes of static types.
3. Whatever size, up to LARGEST_VALUE elements, if every use is a value operand: those must be numbers for lowering.
Generative operators (iota, fill, broadcast) fold under 3 alone. Nothing is simplified algebraically: x * 0 stays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import OpatlasError
from compiler.ir import CONSTANT, Constant, Op, TensorType, Value, known_value
from compiler.ops.registry import Operator
from compiler.passes.knowledge import LARGEST_VALUE, SIZES_ONLY
from compiler.passes.manager import Pass, PassResult
from compiler.rewrite import RewriteCounter, is_pure
from compiler.rewrite.driver import replace_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Graph

SMALL: Final = 128
"""Bytes that a constant may take in place of an operation: about what the operation takes in a model file."""


@dataclass(frozen=True)
class Fold(Pass):
    """Evaluate operations on constants."""

    name: ClassVar[str] = "fold"

    def run(self, graph: Graph, counter: RewriteCounter) -> PassResult:
        """Operations in program order, so that one sweep folds chains."""
        hits: Counter[str] = Counter()
        for op in list(graph.walk()):
            results = None if op.graph is None else _evaluate(op)
            if results is None:
                continue
            if not counter.allow(self.name, op):
                break
            _replace(op, results)
            hits[op.name] += 1
        return PassResult(bool(hits), hits)


def _evaluate(op: Op) -> tuple[Any, ...] | None:
    """The results, or None where the operation is not to be folded."""
    definition = op.definition
    if not isinstance(definition, Operator) or op.regions or not op.results or not is_pure(op):
        return None
    if not all(isinstance(result.type, TensorType) for result in op.results):
        return None
    operands = _operands(op)
    if operands is None or not _worthwhile(op, known_only=False):
        return None
    try:
        with np.errstate(all="ignore"):
            results = definition.evaluate(op.call(), operands, _no_region)
    except OpatlasError:
        return None  # it has no meaning for these operands: that is for the run to say
    arrays = tuple(np.asarray(result) for result in results)
    return arrays if _worthwhile(op, known_only=True, sizes=[array.nbytes for array in arrays]) else None


def _operands(op: Op) -> list[Any] | None:
    if isinstance(op.definition, SIZES_ONLY):
        type_ = op.operand(0).type
        if isinstance(type_, TensorType) and type_.is_static:
            return [np.broadcast_to(np.zeros((), type_.element.dtype), type_.shape)]
        return None
    found: list[Any] = []
    for operand in op.operands:
        array = None if operand is None else known_value(operand)
        if operand is not None and array is None:
            return None
        found.append(array)
    return found


def _worthwhile(op: Op, *, known_only: bool, sizes: Sequence[int] = ()) -> bool:
    """Whether the results may become constants; before evaluation judged by the types, where these are static."""
    if _feeds_value_operands(op):
        return True
    if isinstance(op.definition, Operator) and op.definition.generative:
        return False
    if not known_only:
        types = [result.tensor for result in op.results]
        if not all(type_.is_static for type_ in types):
            return True
        sizes = [type_.size * type_.element.dtype.itemsize for type_ in types]
    return sum(sizes) <= max(SMALL, _freed(op))


def _freed(op: Op) -> int:
    """Bytes of the constants that only this operation uses."""
    only = [operand for operand in set(op.operands) if operand is not None and len(operand.users) == 1]
    return sum(array.nbytes for operand in only if (array := known_value(operand)) is not None)


def _feeds_value_operands(op: Op) -> bool:
    for result in op.results:
        type_ = result.tensor
        if not type_.is_static or type_.size > LARGEST_VALUE or not result.users:
            return False
        if not all(_is_value_operand(result, user) for user in result.users):
            return False
    return True


def _is_value_operand(value: Value, user: Op) -> bool:
    definition = user.definition
    if not isinstance(definition, Operator):
        return False
    return all(
        definition.signature_operand(index).value for index, operand in enumerate(user.operands) if operand is value
    )


def _no_region(region: Graph, arguments: Sequence[Any]) -> list[Any]:
    msg = f"folding evaluates no regions; '{region.name}' was given {len(arguments)} arguments"
    raise OpatlasError(msg)


def _replace(op: Op, results: Sequence[Any]) -> None:
    assert op.graph is not None
    feeding = {operand.op for operand in op.operands if operand is not None and operand.op is not None}
    for old, array in zip(op.results, results, strict=True):
        constant = Constant.of(array)
        made = op.graph.insert(Op(CONSTANT, (), (constant.type,), {"value": constant}, (), op.location), op)
        replace_value("fold", op, old, made.result)
    op.erase()
    for source in feeding:
        if source.definition.holds_constant and not source.result.users:
            source.erase()
