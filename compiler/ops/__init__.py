"""The operators of the IR. Importing the package fills the registry, one family a module."""

from compiler.ops import elementwise
from compiler.ops.registry import Composite, Operator, lookup, operators

__all__ = ["Composite", "Operator", "elementwise", "lookup", "operators"]
