"""The operators of the IR. Importing the package fills the registry, one family a module."""

from compiler.ops import compare, convert, elementwise, logic, reduce
from compiler.ops.registry import Composite, Operator, lookup, operators

__all__ = ["Composite", "Operator", "compare", "convert", "elementwise", "logic", "lookup", "operators", "reduce"]
