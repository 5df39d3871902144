"""Softmax and its logarithm, from exponentials and sums; narrow results of wide ones.

1. e / sum(e), or e * (1 / sum(e)), with e = exp(x - max(x)), over one dim => softmax(x)
2. s - log(sum(exp(s))), with s = x - max(x), over one dim => log_softmax(x)
3. cast(f(cast(x))) back to x's narrow type => f(x), f a composite that computes in the wide type by itself

Not without the maximum: exp(x) / sum(exp(x)) overflows where a softmax does not. Not with dims that are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.ir import F32
from compiler.ops.compose import Pointwise
from compiler.ops.convert import Cast
from compiler.ops.elementwise import Div, Exp, Log, Mul, Reciprocal, Sub
from compiler.ops.normalization import LayerNorm, RmsNorm
from compiler.ops.reduce import ReduceMax, ReduceSum, Reduction
from compiler.ops.softmax import LogSoftmax, Softmax
from compiler.passes.recognition.pieces import defined_by, require_unshared
from compiler.rewrite import REASSOCIATE, Match, NoMatch, anything, operation, rule

if TYPE_CHECKING:
    from compiler.ir import Value
    from compiler.rewrite import Rule


def _reduced(value: Value, kind: type[Reduction]) -> tuple[Value, int] | None:
    """(x, axis) where the value is the reduction of x over one dim that is kept."""
    op = defined_by(value, kind)
    if op is None:
        return None
    call = op.call()
    axes = call.integers("axes")
    if len(axes) != 1 or not call.flag("keep_dims"):
        return None
    return op.operand(0), axes[0] % call.tensor(0).rank


def _shifted(value: Value) -> tuple[Value, int] | None:
    """(x, axis) where the value is x - max(x) over one dim."""
    op = defined_by(value, Sub)
    greatest = None if op is None else _reduced(op.operand(1), ReduceMax)
    if op is None or greatest is None or greatest[0] is not op.operand(0):
        return None
    return greatest


def _exponentials(value: Value) -> tuple[Value, int] | None:
    """(x, axis) where the value is exp(x - max(x)) over one dim."""
    op = defined_by(value, Exp)
    return None if op is None else _shifted(op.operand(0))


def _softmax(match: Match, powers: Value, total: Value) -> Value:
    found, summed = _exponentials(powers), _reduced(total, ReduceSum)
    match.require(found is not None, "no exponential of a value minus its maximum")
    match.require(summed is not None and summed[0] is powers, "the divisor is not the sum of the dividend")
    assert found is not None
    assert summed is not None
    x, axis = found
    match.require(axis == summed[1], "maximum and sum run over different dims")
    require_unshared(match, [x])
    return match.build(Softmax, x, axis=axis)


@rule(operation(Div, anything("powers"), anything("total")), REASSOCIATE)
def softmax_quotient(match: Match) -> Value:
    """exp(x - max) / sum(exp(x - max)) => softmax(x)."""
    return _softmax(match, match["powers"], match["total"])


@rule(operation(Mul, anything("powers"), operation(Reciprocal, anything("total"))), REASSOCIATE)
def softmax_reciprocal(match: Match) -> Value:
    """exp(x - max) * (1 / sum(exp(x - max))) => softmax(x)."""
    return _softmax(match, match["powers"], match["total"])


@rule(operation(Sub, anything("shifted"), operation(Log, anything("total"))), REASSOCIATE)
def log_softmax_pieces(match: Match) -> Value:
    """s - log(sum(exp(s))), with s = x - max(x) => log_softmax(x)."""
    found, summed = _shifted(match["shifted"]), _reduced(match["total"], ReduceSum)
    match.require(found is not None and summed is not None, "no value minus its maximum, or no sum")
    assert found is not None
    assert summed is not None
    powers = defined_by(summed[0], Exp)
    match.require(powers is not None and powers.operand(0) is match["shifted"], "the sum is of something else")
    match.require(found[1] == summed[1], "maximum and sum run over different dims")
    require_unshared(match, [found[0]])
    return match.build(LogSoftmax, found[0], axis=found[1])


@rule(
    operation(
        Cast,
        operation(
            (Pointwise, LayerNorm, RmsNorm), operation(Cast, anything("x")), more=True, name="wide", single_use=True
        ),
    ),
    REASSOCIATE,
)
def narrow_composite(match: Match) -> Value:
    """cast(f(cast(x, float32)), x's type) => f(x): f computes in float32 and rounds once in any case."""
    narrow, wide = match.tensor("x").element, match["wide"].tensor.element
    if not (narrow.is_float and narrow.bits < F32.bits and wide is F32 and match.root.result.tensor.element is narrow):
        reason = "the casts do not widen a narrow float and bring it back"
        raise NoMatch(reason)
    op = match.defining("wide")
    match.require(op.attributes.get("compute_type") in (None, F32), "it computes in another type")
    match.require(all(operand is None for operand in op.operands[1:]), "it has further operands of the wide type")
    return match.builder.op(op.definition, [match["x"]], (), **op.attributes).result


RULES: Final[tuple[Rule, ...]] = (softmax_quotient, softmax_reciprocal, log_softmax_pieces, narrow_composite)
