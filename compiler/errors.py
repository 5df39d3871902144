"""Every refusal of the compiler: one class a kind of diagnosis.

A message names the thing, what was found, what was expected and where it came from. The name of the class
(``diagnosis``) is what records and expectation files key on.
"""

from __future__ import annotations


class OpatlasError(Exception):
    """Base of all diagnoses. ``stage`` is set by the compilation session as the error passes through it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.stage: str | None = None

    @property
    def diagnosis(self) -> str:
        """Name of the kind of refusal."""
        return type(self).__name__


class InvalidModel(OpatlasError):
    """A model file or object that is broken: truncated, cyclic, duplicate names, missing or misplaced data."""


class UnsupportedOperator(OpatlasError):
    """A framework operator, or a form of it, that has no conversion."""

    def __init__(
        self, domain: str, name: str, version: int | None, reason: str, *, attribute: str | None = None, node: str = ""
    ) -> None:
        shown_version = "" if version is None else f"-{version}"
        shown_attribute = "" if attribute is None else f", attribute '{attribute}'"
        shown_node = f" (node '{node}')" if node else ""
        super().__init__(f"{domain or 'ai.onnx'}.{name}{shown_version}{shown_attribute}{shown_node}: {reason}")
        self.domain = domain
        self.name = name
        self.version = version
        self.attribute = attribute
        self.node = node
        self.reason = reason


class UnsupportedType(OpatlasError):
    """An element type or a kind of type that a stage cannot take."""


class InvalidGraph(OpatlasError):
    """A graph that breaks a rule of the IR: structure, dominance, uses, types, attribute domains."""


class TypeMismatch(InvalidGraph, InvalidModel):
    """Element types, ranks or sizes that an operator does not take, in a model's file or in a graph."""


class InvalidAttribute(InvalidGraph, InvalidModel):
    """An attribute that is unknown, missing or outside its domain, in a model's file or in a graph."""


class InvalidText(OpatlasError):
    """Text of a graph or a program that does not parse. The message starts with line and column."""


class EvaluationError(OpatlasError):
    """Operand values for which an operator has no meaning, such as an index out of range."""


class AbstractConstant(EvaluationError):
    """The data of a constant that has only a type and a seed was asked for."""


class InvalidInput(OpatlasError):
    """Inputs of a run that do not fit the model: number, name, type, rank or size."""


class InvalidTarget(OpatlasError):
    """A target description that is unknown or breaks its schema."""


class InvalidProgram(OpatlasError):
    """A program that the static verifier refuses."""


class LoweringError(OpatlasError):
    """A kernel that cannot be placed on the target, even at its smallest tile."""


class TimingNeedsData(OpatlasError):
    """Timing without data met a size, a trip count or a branch that only data decides."""

    def __init__(self, value: str, location: str) -> None:
        super().__init__(f"timing needs the value of {value} (at {location}): bind it, or give inputs")
        self.value = value
        self.location = location


class ValueNeeded(UnsupportedOperator):
    """A form of an operator that only data decides, such as the axes of a reduction that are computed while it runs.

    ``value`` names the model's value; the model can be read where that value is given. Without a name it is a size of
    the model's inputs that decides.
    """

    def __init__(
        self, domain: str, name: str, version: int | None, reason: str, *, node: str = "", value: str = ""
    ) -> None:
        super().__init__(domain, name, version, reason, node=node)
        self.value = value


class RewriteCycle(OpatlasError):
    """Rewrite rules that never come to an end; the message names those that alternate."""


class ExportError(OpatlasError):
    """An operation, a type or an operator set that a file format of another tool has no form for."""


class UnsupportedByOpset(ExportError):
    """An operation that an ONNX operator set cannot say, not even by other operators.

    ``since`` is the first operator set that can; None where no one known can.
    """

    def __init__(self, operator: str, location: str, opset: int, reason: str, since: int | None = None) -> None:
        later = "no operator set can" if since is None else f"operator set {since} is the first that can"
        super().__init__(f"'{operator}' (at {location}) cannot be said in operator set {opset}: {reason}; {later}")
        self.operator = operator
        self.location = location
        self.opset = opset
        self.reason = reason
        self.since = since


class NumericChange(OpatlasError):
    """A pass changed a result by more than its numeric class allows."""


class BrokenExtension(OpatlasError):
    """A package that names operators of its own and cannot be imported."""
