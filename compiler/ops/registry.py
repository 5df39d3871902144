"""The operator registry: one class an operator, from which everything else derives.

An operator declares its signature (operands, attributes, result types), infers and evaluates, states algebraic facts,
and gives its ``work`` as structured loops or, if it is a composite, a ``decompose`` into simpler operators. Passes and
lowering ask classes and facts; they never compare names.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar, cast

from compiler.errors import InvalidAttribute, InvalidGraph, TypeMismatch
from compiler.ir import (
    CONSTANT,
    ELEMENT_TYPES,
    RETURN,
    Attributes,
    AttributeValue,
    Builder,
    Call,
    Constant,
    Definition,
    ElementType,
    Kind,
    Op,
    TensorType,
    Type,
    Value,
)
from compiler.ops.extensions import load_extensions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from compiler.ops.work import Work

FLOAT: Final = frozenset(element for element in ELEMENT_TYPES if element.is_float)
SIGNED: Final = frozenset(element for element in ELEMENT_TYPES if element.kind is Kind.SIGNED)
UNSIGNED: Final = frozenset(element for element in ELEMENT_TYPES if element.kind is Kind.UNSIGNED)
INTEGER: Final = SIGNED | UNSIGNED
COMPLEX: Final = frozenset(element for element in ELEMENT_TYPES if element.kind is Kind.COMPLEX)
BOOLEAN: Final = frozenset(element for element in ELEMENT_TYPES if element.kind is Kind.BOOL)
STRINGS: Final = frozenset(element for element in ELEMENT_TYPES if element.kind is Kind.STRING)
REAL: Final = FLOAT | INTEGER
NUMERIC: Final = REAL | COMPLEX
ANY: Final = frozenset(ELEMENT_TYPES)


@dataclass(frozen=True, slots=True)
class Variable:
    """A type variable of a signature: operands that share it have the same element type, one of ``allowed``."""

    name: str
    allowed: frozenset[ElementType]


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of a signature.

    ``value`` marks a *value operand*: small, and needed to know the result's shape (shape, axes, pads, k).
    ``variadic`` is allowed for the last one; ``other`` allows sequences, optionals and any type at all.
    """

    name: str
    type: Variable
    optional: bool = False
    variadic: bool = False
    value: bool = False
    other: bool = False


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = _Required()


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that an attribute may have: a description and a test."""

    description: str
    contains: Callable[[AttributeValue], bool]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a signature. ``default`` None: it may be absent."""

    name: str
    domain: Domain
    default: AttributeValue | _Required | None = REQUIRED
    doc: str = ""

    @property
    def is_required(self) -> bool:
        """Whether a call must give it."""
        return isinstance(self.default, _Required)


def _is_int(value: AttributeValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def integer(low: int | None = None, high: int | None = None) -> Domain:
    """Integers, between bounds where given (both inclusive)."""
    shown = f"an integer{'' if low is None else f' >= {low}'}{'' if high is None else f' <= {high}'}"

    def contains(value: AttributeValue) -> bool:
        if not _is_int(value):
            return False
        number = cast("int", value)
        return (low is None or number >= low) and (high is None or number <= high)

    return Domain(shown, contains)


def integers(low: int | None = None) -> Domain:
    """Tuples of integers, each at least ``low`` where given."""
    shown = f"integers{'' if low is None else f' >= {low}'}"
    return Domain(
        shown,
        lambda value: (
            isinstance(value, tuple)
            and all(_is_int(item) and (low is None or cast("int", item) >= low) for item in value)
        ),
    )


def choice(*options: str) -> Domain:
    """One of these strings."""
    return Domain(f"one of {', '.join(options)}", lambda value: value in options)


NUMBER: Final = Domain("a number", lambda value: isinstance(value, (int, float)) and not isinstance(value, bool))
NUMBERS: Final = Domain("numbers", lambda value: isinstance(value, tuple) and all(map(NUMBER.contains, value)))
FLAG: Final = Domain("true or false", lambda value: isinstance(value, bool))
TEXT: Final = Domain("a string", lambda value: isinstance(value, str))
TEXTS: Final = Domain("strings", lambda value: isinstance(value, tuple) and all(isinstance(x, str) for x in value))
ELEMENT: Final = Domain("an element type", lambda value: isinstance(value, ElementType))
DATA: Final = Domain("a constant", lambda value: isinstance(value, Constant))


class Operator(Definition):
    """Base of all operators. Subclasses are declarative; one instance a class is made by :func:`register`."""

    operands: ClassVar[tuple[Operand, ...]] = ()
    attributes: ClassVar[tuple[Attribute, ...]] = ()
    regions: ClassVar[tuple[str, ...]] = ()
    family: ClassVar[str] = ""
    """Name of the file under compiler/ops that holds it; set at registration."""

    # Algebraic facts, which rules ask for.
    commutative: ClassVar[bool] = False
    """f(a, b) = f(b, a) to the bit."""
    associative: ClassVar[bool] = False
    """f(f(a, b), c) = f(a, f(b, c)) to the bit for integers and bools; for floats only up to rounding."""
    involution: ClassVar[bool] = False
    """f(f(x)) = x to the bit."""
    idempotent: ClassVar[bool] = False
    """f(f(x)) = f(x) to the bit; for two operands f(x, x) = x."""
    alias: ClassVar[bool] = False
    """The result is operand 0's bytes in the same order under another type."""
    generative: ClassVar[bool] = False
    """The result is made from small operands (iota, fill, broadcast): folding it would grow the model."""
    pure: ClassVar[bool] = True
    """The same operands give the same results, and nothing else happens."""

    def commutes(self, element: ElementType) -> bool:  # noqa: ARG002 - for overriding
        """Whether f(a, b) = f(b, a) to the bit for operands of this type."""
        return self.commutative

    def identity_element(self, element: ElementType) -> bool | int | float | None:  # noqa: ARG002 - for overriding
        """The e with f(x, e) = x to the bit for every x of the type (-0.0 for a float sum), or None."""
        return None

    def complete(self, attributes: Attributes) -> Attributes:
        """The attributes with defaults for those that are absent."""
        missing = {
            spec.name: spec.default
            for spec in self.attributes
            if spec.name not in attributes and spec.default is not None and not isinstance(spec.default, _Required)
        }
        return {**attributes, **missing} if missing else attributes

    def check(self, call: Call) -> None:
        """Check operands, attributes and regions against the signature. Raises TypeMismatch, InvalidAttribute."""
        self._check_operands(call)
        self._check_attributes(call)
        if len(call.regions) != len(self.regions):
            msg = f"{self.name}: {len(call.regions)} regions; expected {len(self.regions)}"
            raise InvalidGraph(msg)

    def signature_operand(self, index: int) -> Operand:
        """The signature's entry for operand ``index``. Raises TypeMismatch when there are fewer."""
        if index < len(self.operands):
            return self.operands[index]
        if self.operands and self.operands[-1].variadic:
            return self.operands[-1]
        msg = f"{self.name}: operand {index} given; expected at most {len(self.operands)}"
        raise TypeMismatch(msg)

    def _check_operands(self, call: Call) -> None:
        bound: dict[str, ElementType] = {}
        for index, type_ in enumerate(call.types):
            spec = self.signature_operand(index)
            if type_ is None:
                if not spec.optional:
                    msg = f"{self.name}: operand {index} ('{spec.name}') is omitted; it is required"
                    raise TypeMismatch(msg)
                continue
            if spec.other:
                continue
            if not isinstance(type_, TensorType):
                msg = f"{self.name}: operand {index} ('{spec.name}') is {type_}; expected a tensor"
                raise TypeMismatch(msg)
            self._check_element(index, spec, type_.element, bound)
        for spec in self.operands[len(call.types) :]:
            if not spec.optional and not spec.variadic:
                msg = f"{self.name}: operand '{spec.name}' is missing; {len(call.types)} given"
                raise TypeMismatch(msg)

    def _check_element(self, index: int, spec: Operand, found: ElementType, bound: dict[str, ElementType]) -> None:
        if found not in spec.type.allowed:
            allowed = ", ".join(element.name for element in ELEMENT_TYPES if element in spec.type.allowed)
            msg = f"{self.name}: operand {index} ('{spec.name}') has element type {found}; expected one of {allowed}"
            raise TypeMismatch(msg)
        wanted = bound.setdefault(spec.type.name, found)
        if wanted is not found:
            msg = f"{self.name}: operand {index} ('{spec.name}') has element type {found}; expected {wanted} as before"
            raise TypeMismatch(msg)

    def _check_attributes(self, call: Call) -> None:
        specs = {spec.name: spec for spec in self.attributes}
        for name, value in call.attributes.items():
            spec = specs.get(name)
            if spec is None:
                msg = f"{self.name}: attribute '{name}' is unknown; expected one of {', '.join(specs) or 'none'}"
                raise InvalidAttribute(msg)
            if not spec.domain.contains(value):
                msg = f"{self.name}: attribute '{name}' is {value!r}; expected {spec.domain.description}"
                raise InvalidAttribute(msg)
        for spec in self.attributes:
            if isinstance(spec.default, _Required) and spec.name not in call.attributes:
                msg = f"{self.name}: attribute '{spec.name}' is missing; expected {spec.domain.description}"
                raise InvalidAttribute(msg)

    @abstractmethod
    def infer(self, call: Call) -> tuple[Type, ...]:
        """The result types; dims stay symbolic where sizes are not known. Raises TypeMismatch, InvalidAttribute."""

    def work(self, call: Call, results: tuple[Type, ...]) -> Work | None:  # noqa: ARG002 - for overriding
        """The loops, for static types and known value operands; None where the operator has no loop form."""
        return None


class Composite(Operator):
    """An operator whose meaning is its decomposition in exact arithmetic, rounded once at each result."""

    @abstractmethod
    def decompose(self, op: Op, builder: Builder) -> Sequence[Value]:
        """Build the same results from simpler operators with ``builder`` and return them.

        A compute type wider than the result's is expressed by casts that the decomposition emits.
        """


_OPERATORS: dict[str, Operator] = {}
_Class = TypeVar("_Class", bound=type[Operator])


def register(cls: _Class) -> _Class:
    """Class decorator: enter the operator into the registry. Raises InvalidGraph for a name that is taken."""
    if cls.name in _OPERATORS:
        holder = type(_OPERATORS[cls.name]).__module__
        msg = f"operator '{cls.name}' of {cls.__module__} is already registered by {holder}"
        raise InvalidGraph(msg)
    cls.family = cls.__module__.rpartition(".")[2]
    _OPERATORS[cls.name] = cls.instance()
    return cls


def operators() -> Mapping[str, Operator]:
    """All operators by name, in order of registration (families alphabetically, then as the file lists them)."""
    return dict(_OPERATORS)


def lookup(name: str) -> Definition:
    """The definition of that name: the IR's own two, ours, or an extension's. Raises InvalidGraph, BrokenExtension."""
    builtin: Iterable[Definition] = (RETURN, CONSTANT)
    for candidate in builtin:
        if candidate.name == name:
            return candidate
    found = _OPERATORS.get(name)
    if found is None and load_extensions():
        found = _OPERATORS.get(name)
    if found is None:
        msg = f"operator '{name}' is unknown"
        raise InvalidGraph(msg)
    return found
