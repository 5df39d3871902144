"""What a target description says, checked: one frozen pydantic model a part of an accelerator.

Unknown keys are refused, sizes are positive, and every figure has a source (see :class:`Target`).
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from compiler.errors import InvalidTarget
from compiler.ir import ELEMENT_TYPES, ElementType

ELEMENT_NAMES: Final[dict[str, ElementType]] = {element.dtype.name: element for element in ELEMENT_TYPES}
"""Element types by the names that numpy and ml_dtypes give them: float32, bfloat16, int8, bool."""


def _parse_element(value: Any) -> ElementType:  # noqa: ANN401 - whatever YAML holds
    if isinstance(value, ElementType):
        return value
    found = ELEMENT_NAMES.get(value) if isinstance(value, str) else None
    if found is None:
        msg = f"expected an element type, one of {', '.join(ELEMENT_NAMES)}"
        raise ValueError(msg)
    return found


Element = Annotated[
    ElementType, BeforeValidator(_parse_element), PlainSerializer(lambda element: element.dtype.name, return_type=str)
]
Positive = Annotated[int, Field(gt=0, strict=True)]
NotNegative = Annotated[int, Field(ge=0, strict=True)]
Picojoule = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Watts = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Part(BaseModel):
    """Base: frozen, refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Dataflow(Enum):
    """What stays in the cells of the matrix array while the rest streams past."""

    OUTPUT_STATIONARY = "os"
    WEIGHT_STATIONARY = "ws"
    INPUT_STATIONARY = "is"


class Product(Part):
    """A pair of element types that the matrix array multiplies, and the type in which it sums.

    ``depth``: products along k that a cell adds a cycle (4 for a cell that takes four int8 pairs at once).
    """

    a: Element
    b: Element
    accumulator: Element
    depth: Positive = 1


class Pruned(Part):
    """N:M sparsity: of each ``group`` factors along k, at most ``kept`` are not zero, and the array skips the others.

    Charges take it that every second factor (the weights) is pruned so; what a run computes does not depend on it.
    """

    kept: Positive
    group: Positive

    @model_validator(mode="after")
    def _check(self) -> Pruned:
        if self.kept > self.group:
            msg = f"keeps {self.kept} of {self.group}; expected no more than all"
            raise ValueError(msg)
        return self

    def length(self, k: int) -> int:
        """Factors that are left of ``k``: the last group may not be whole."""
        return k // self.group * self.kept + min(self.kept, k % self.group)

    @property
    def index_bits(self) -> int:
        """Bits that say, beside each factor kept, where in its group it stands."""
        return (self.group - 1).bit_length()


class Matrix(Part):
    """The systolic array.

    ``dataflow`` is how it works unless an instruction asks for one of ``alternatives``. ``hide_preload``: the array has
    a second set of stationary registers, so that what a fold needs before and after its work is done while others work:
    the load of the next stationary tile (ws, is), the way out of the last one's sums (os).
    """

    rows: Positive
    columns: Positive
    dataflow: Dataflow
    products: tuple[Product, ...]
    alternatives: tuple[Dataflow, ...] = ()
    hide_preload: bool = False
    pruned: Pruned | None = None

    @model_validator(mode="after")
    def _check(self) -> Matrix:
        if len(set(self.dataflows)) < len(self.dataflows):
            msg = (
                f"dataflow and alternatives name {', '.join(flow.value for flow in self.dataflows)}; expected each once"
            )
            raise ValueError(msg)
        pairs = [(product.a, product.b) for product in self.products]
        for pair in pairs:
            if pairs.count(pair) > 1:
                msg = f"products list {pair[0].dtype.name} x {pair[1].dtype.name} twice; expected each pair once"
                raise ValueError(msg)
        return self

    @property
    def dataflows(self) -> tuple[Dataflow, ...]:
        """Every dataflow that the array offers, its own first."""
        return (self.dataflow, *self.alternatives)

    def product(self, a: ElementType, b: ElementType) -> Product | None:
        """How elements of types ``a`` and ``b`` are multiplied; None where the array cannot."""
        return next((product for product in self.products if product.a is a and product.b is b), None)


class VectorCycles(Part):
    """Cycles that one scalar function takes in a lane, by class; ``start`` is spent once an instruction."""

    simple: Positive
    division: Positive
    transcendental: Positive
    start: NotNegative


class VectorUnit(Part):
    """The vector unit. Tensors may have the types ``elements``; ``internal`` ones exist only inside programs.

    Internal types are those of accumulators and wider intermediates: a float16 target sums in float32 and yet takes no
    float32 tensor. ``shares_products``: sums of products that the matrix array takes may go to the vector unit where
    that is faster; false for arrays that stand for published ones, which have no such unit.
    """

    lanes: Positive
    elements: tuple[Element, ...]
    internal: tuple[Element, ...] = ()
    cycles: VectorCycles
    shares_products: bool = True

    @property
    def allowed(self) -> frozenset[ElementType]:
        """Every type that an instruction may name."""
        return frozenset(self.elements) | frozenset(self.internal)


class Host(Part):
    """A modelled host core: cycles are of the accelerator's clock."""

    latency_cycles: NotNegative
    bytes_per_cycle: Annotated[float, Field(gt=0)]
    elements_per_cycle: Annotated[float, Field(gt=0)]


class Sram(Part):
    """The scratchpad. ``banks`` divide it evenly; words lie in them by turns.

    ``word_bytes`` is what a bank gives the vector unit a cycle (the matrix array and DMA have ports of their own);
    None: its banks are never what limits it.
    """

    bytes: Positive
    banks: Positive
    alignment: Positive = 64
    word_bytes: Positive | None = None


class Dram(Part):
    """Main memory: ``bytes_per_cycle`` may be infinite (``.inf``)."""

    bytes: Positive
    bytes_per_cycle: Annotated[float, Field(gt=0)]
    latency_cycles: NotNegative
    burst_bytes: Positive


class Energy(Part):
    """Picojoules: a multiply-accumulate by the type of its factors, a scalar operation by its type, a byte moved.

    ``static_watts`` is what the accelerator takes all the time, ``host_watts`` the host for as long as it works;
    None where that is not modelled.
    """

    mac: dict[str, Picojoule]
    operation: dict[str, Picojoule]
    sram_byte: Picojoule
    dram_byte: Picojoule
    static_watts: Watts | None = None
    host_watts: Watts | None = None

    @model_validator(mode="after")
    def _check(self) -> Energy:
        for table in (self.mac, self.operation):
            for name in table:
                if name not in ELEMENT_NAMES:
                    msg = f"'{name}' is no element type; expected one of {', '.join(ELEMENT_NAMES)}"
                    raise ValueError(msg)
        return self


class Mode(Part):
    """A frequency and voltage other than the nominal ones.

    ``energy_scale`` is that of dynamic on-chip energy and of static power: the square of the ratio of voltages.
    """

    frequency_hz: Positive
    energy_scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0


class Limits(Part):
    """What an instruction can hold."""

    loops: Positive = 12
    inputs: Positive = 32


class Target(Part):
    """An accelerator. Names of types are numpy's; times are cycles of ``frequency_hz``; sizes are bytes.

    ``sources`` says where figures are from, by dotted key; a key stands for all below it, and each figure must be
    covered.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(@[a-z0-9-]+)?$")]
    description: str
    frequency_hz: Positive
    matrix: Matrix
    vector: VectorUnit
    host: Host
    sram: Sram
    dram: Dram
    energy: Energy
    composites: tuple[str, ...] = ()
    modes: dict[Annotated[str, Field(pattern=r"^[a-z0-9-]+$")], Mode] = {}
    limits: Limits = Limits()
    sources: dict[str, str]

    @model_validator(mode="after")
    def _check(self) -> Target:
        if self.sram.bytes % self.sram.banks:
            msg = f"sram.banks is {self.sram.banks}; expected a divisor of sram.bytes, {self.sram.bytes}"
            raise ValueError(msg)
        self._check_types()
        self._check_sources()
        return self

    def _check_types(self) -> None:
        allowed = self.vector.allowed
        for product in self.matrix.products:
            if product.accumulator not in allowed:
                name = product.accumulator.dtype.name
                msg = (
                    f"the vector unit lacks {name}, an accumulator of the matrix array; expected it in vector.internal"
                )
                raise ValueError(msg)
            if product.a.dtype.name not in self.energy.mac:
                msg = f"energy.mac lacks {product.a.dtype.name}; expected a figure for each factor of a product"
                raise ValueError(msg)
        for element in (*self.vector.elements, *self.vector.internal):
            if element.dtype.name not in self.energy.operation:
                msg = f"energy.operation lacks {element.dtype.name}; expected a figure for each type of the vector unit"
                raise ValueError(msg)

    def _check_sources(self) -> None:
        keys = list(figures(self))
        for key in keys:
            if self.source(key) is None:
                msg = f"sources lack '{key}'; expected an entry for it or for a key above it"
                raise ValueError(msg)
        for entry in self.sources:
            if not any(key == entry or key.startswith(f"{entry}.") for key in keys):
                msg = f"sources name '{entry}', which is no figure of the target"
                raise ValueError(msg)

    def __hash__(self) -> int:
        """Equal targets have equal names; the tables inside have no hash."""
        return hash(self.name)

    def source(self, key: str) -> str | None:
        """Where the figure at this dotted key is from: the nearest entry at or above it."""
        while key:
            found = self.sources.get(key)
            if found is not None:
                return found
            key = key.rpartition(".")[0]
        return None

    @property
    def tensor_elements(self) -> frozenset[ElementType]:
        """Types that tensors on the accelerator may have."""
        return frozenset(self.vector.elements)

    def supports(self, element: ElementType) -> bool:
        """Whether a tensor of this type can be on the accelerator."""
        return element in self.vector.elements

    def transfer_cycles(self, count: int) -> int:
        """Cycles of one DMA transfer of ``count`` bytes: latency + ceil(bytes / bandwidth)."""
        if math.isinf(self.dram.bytes_per_cycle):
            return self.dram.latency_cycles
        return self.dram.latency_cycles + math.ceil(count / self.dram.bytes_per_cycle)

    def in_mode(self, name: str) -> Target:
        """The same target at another frequency and voltage; the DRAM keeps its own clock. Raises InvalidTarget."""
        mode = self.modes.get(name)
        if mode is None:
            msg = f"target '{self.name}' has no mode '{name}'; expected one of {', '.join(self.modes) or 'none'}"
            raise InvalidTarget(msg)
        faster, scale, energy = mode.frequency_hz / self.frequency_hz, mode.energy_scale, self.energy
        scaled = energy.model_copy(
            update={
                "mac": {element: spent * scale for element, spent in energy.mac.items()},
                "operation": {element: spent * scale for element, spent in energy.operation.items()},
                "sram_byte": energy.sram_byte * scale,
                "static_watts": None if energy.static_watts is None else energy.static_watts * scale,
            }
        )
        update = {"name": f"{self.name}@{name}", "frequency_hz": mode.frequency_hz, "energy": scaled}
        return self.with_memory(
            bytes_per_cycle=self.dram.bytes_per_cycle / faster,
            latency_cycles=math.ceil(self.dram.latency_cycles * faster),
        ).model_copy(update=update)

    def with_memory(self, *, bytes_per_cycle: float | None = None, latency_cycles: int | None = None) -> Target:
        """The same target with another bandwidth (may be infinite) or latency of the DRAM. Raises InvalidTarget."""
        bandwidth = self.dram.bytes_per_cycle if bytes_per_cycle is None else bytes_per_cycle
        latency = self.dram.latency_cycles if latency_cycles is None else latency_cycles
        if not bandwidth > 0 or latency < 0:
            msg = f"dram: {bandwidth} bytes a cycle and latency {latency}; expected > 0 and >= 0"
            raise InvalidTarget(msg)
        dram = self.dram.model_copy(update={"bytes_per_cycle": bandwidth, "latency_cycles": latency})
        return self.model_copy(update={"dram": dram})


_NOT_FIGURES: Final = frozenset({"name", "description", "sources", "composites", "limits"})


def figures(target: Target) -> dict[str, Any]:
    """Every leaf of the description that needs a source, by dotted key."""
    found: dict[str, Any] = {}

    def visit(key: str, value: Any) -> None:  # noqa: ANN401 - any part of the description
        if isinstance(value, Part):
            for name in type(value).model_fields:
                visit(f"{key}.{name}", getattr(value, name))
        elif isinstance(value, dict):
            for name, item in value.items():
                visit(f"{key}.{name}", item)
        elif value is not None:  # what is not modelled needs no source
            found[key] = value

    for name in type(target).model_fields:
        if name not in _NOT_FIGURES:
            visit(name, getattr(target, name))
    return found
