"""Rules written as functions, their matcher, the worklist driver, and explanations of what did not fire."""

from compiler.rewrite.counter import RewriteCounter
from compiler.rewrite.driver import RewriteResult, RuleSet, rewrite
from compiler.rewrite.explain import explain
from compiler.rewrite.facts import is_pure, same_bits
from compiler.rewrite.numerics import EXACT, QUANTIZE, REASSOCIATE, Numerics, ulp
from compiler.rewrite.pattern import Pattern, anything, constant, operation
from compiler.rewrite.rule import Match, NoMatch, Rule, rule

__all__ = [
    "EXACT",
    "QUANTIZE",
    "REASSOCIATE",
    "Match",
    "NoMatch",
    "Numerics",
    "Pattern",
    "RewriteCounter",
    "RewriteResult",
    "Rule",
    "RuleSet",
    "anything",
    "constant",
    "explain",
    "is_pure",
    "operation",
    "rewrite",
    "rule",
    "same_bits",
    "ulp",
]
