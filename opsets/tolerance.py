"""Named tolerance classes, in declarative form: what they mean in numbers is the comparator's business.

A class is written as its kind with arguments in parentheses: ``exact``, ``ulp(2)``, ``abs_error(tanh)``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_FORM = re.compile(r"([a-z_]+)(?:\(([^()]*)\))?")

KINDS: Mapping[str, frozenset[int]] = {
    "exact": frozenset({0}),
    "exact_signed_zero": frozenset({0}),
    "ulp": frozenset({1}),
    "abs_error": frozenset({1}),
    "input_scaled": frozenset({1}),
    "dot_product": frozenset({0, 1}),
    "reduce_sum": frozenset({0, 1}),
    "reduce_product": frozenset({0}),
    "max_relative": frozenset({1}),
    "relative": frozenset({1}),
    "exp_relative": frozenset({1}),
    "log_sum": frozenset({1}),
    "row_relative": frozenset({2}),
    "steps": frozenset({1}),
    "special_values": frozenset({0}),
    "shape_only": frozenset({0}),
}
"""Kinds that a manifest may name, with how many arguments they take; one may be the name of an attribute."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A tolerance class: its kind and arguments, as written."""

    kind: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(self.arguments)})" if self.arguments else self.kind

    def resolved(self, attributes: Mapping[str, object]) -> Tolerance:
        """The class for a case: an argument that is the name of an attribute takes the case's value."""
        return Tolerance(self.kind, tuple(str(attributes.get(text, text)) for text in self.arguments))


def parse_tolerance(text: str) -> Tolerance:
    """Read the text form of a class.

    :raises ValueError: if the kind is unknown or takes another number of arguments.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None or found[1] not in KINDS:
        raise ValueError(f"tolerance '{text}' is unknown, expected one of {', '.join(sorted(KINDS))}")
    arguments = tuple(part.strip() for part in (found[2] or "").split(",") if part.strip())
    if len(arguments) not in KINDS[found[1]]:
        expected = " or ".join(map(str, sorted(KINDS[found[1]])))
        raise ValueError(f"tolerance '{text}': found {len(arguments)} arguments, expected {expected}")
    return Tolerance(found[1], arguments)
