"""Manifest -> cases. Yields ids and settings alone: nothing is drawn, rendered or built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from generators.case import Case, Frozen, case_id
from generators.pairwise import Axis, Constraint, select
from opsets import Item, Manifest, ManifestError, load_manifests
from opsets.elements import GROUP_OF, GROUPS
from opsets.expressions import parse
from opsets.signature import Parameter

NEWEST_CAP = 24
OLDER_CAP = 8
PAIRED_TYPES = frozenset({"float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool"})
"""Types that take part in pairs; of the others one case each is enough, since most backends refuse them whole."""

_DTYPE, _SHAPES, _OUTPUTS, _DATA, _MODE = "$dtype", "$shapes", "$outputs", "$data", "$mode"
_NUMERIC = frozenset({"float", "narrow", "int", "complex"})
_GROUPS_OF_CLASS = {
    "random": frozenset(GROUPS),
    "zeros": _NUMERIC,
    "ties": _NUMERIC,
    "large": frozenset({"float", "int"}),
    "boundary": frozenset({"float", "int"}),
    "mixed": frozenset({"float", "complex"}),
    "special": frozenset({"float"}),
}
"""Groups of element types for which a data class says something."""


def expand(manifest: Manifest | Item) -> Iterator[Case]:
    """The cases of a manifest, or of one item of it, in a fixed order.

    :raises ManifestError: if an entry's constraints leave nothing.
    """
    for item in manifest.items if isinstance(manifest, Manifest) else (manifest,):
        yield from _cases(item)


@cache
def _by_id(framework: str) -> Mapping[str, Case]:
    return {case.id: case for manifest in load_manifests(framework) for case in expand(manifest)}


def case_by_id(identity: str) -> Case:
    """The case with an id.

    :raises ManifestError: if no manifest yields it.
    """
    framework = identity.partition("-")[0]
    case = _by_id(framework).get(identity)
    if case is None:
        raise ManifestError(f"found no case '{identity}', expected an id that the manifests of {framework} yield")
    return case


def names_of(item: Item, case: Case) -> dict[str, object]:
    """What a manifest's expressions can read of a case."""
    names: dict[str, object] = {"version": case.since_version, "outputs": case.outputs, "dtype": case.dtype}
    names |= {name: attribute.default for name, attribute in item.signature.attributes.items()}
    names |= {formal.name: None for formal in item.signature.inputs}
    names |= dict(case.types) | dict(case.attributes) | dict(case.values)
    if item.dtype_parameter:
        names[item.dtype_parameter] = case.dtype
    shapes = dict(case.shapes)
    for formal in item.signature.inputs:
        if formal.variadic:
            names[formal.name] = [dims for name, dims in case.shapes if _stem(name) == formal.name]
        elif formal.name in shapes:
            names[formal.name] = shapes[formal.name]
    return names


def applies(data_class: str, element: str) -> bool:
    """Whether a data class says something for an element type."""
    return GROUP_OF[element] in _GROUPS_OF_CLASS[data_class]


def _stem(name: str) -> str:
    return name.rpartition("_")[0]


def _cases(item: Item) -> Iterator[Case]:
    plan = _Plan(item)
    cap = item.entry.cap or (NEWEST_CAP if item.newest else OLDER_CAP)
    seen: set[str] = set()
    for row in select(plan.axes, plan.constraints, cap):
        case = plan.case(dict(zip(plan.names, row, strict=True)))
        if case.id not in seen:
            seen.add(case.id)
            yield case
    if not seen:
        raise ManifestError(f"{item.source}: {item.operator}-{item.since_version}: found no case that meets 'where'")


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the shape grid, by input name; dims may be expressions over ``reads``."""

    dims: tuple[tuple[str, tuple[Any, ...] | None], ...]
    reads: frozenset[str]

    def resolve(self, names: Mapping[str, object]) -> dict[str, tuple[int, ...] | None]:
        shapes: dict[str, tuple[int, ...] | None] = {}
        for name, dims in self.dims:
            scope = {**names, **shapes} if self.reads else {}
            shapes[name] = dims if dims is None else tuple(
                int(parse_cached(dim)(scope)) if isinstance(dim, str) else dim for dim in dims
            )
        return shapes


parse_cached = cache(parse)


class _Plan:
    """Axes and constraints of one item."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.by_value = [formal for formal in item.signature.inputs if formal.name in item.entry.grid]
        self.drawn = [formal for formal in item.signature.inputs if formal.name not in item.entry.grid]
        self.rows = [self._row(row) for row in item.entry.shapes]
        self.defaults: dict[str, object] = {
            "version": item.since_version,
            **{name: one.default for name, one in item.signature.attributes.items() if name not in item.entry.grid},
            **{formal.name: None for formal in item.signature.inputs},
        }
        self.axes = self._axes()
        self.names = [axis.name for axis in self.axes]
        self.constraints = self._constraints()

    def _row(self, row: list[Any] | dict[str, Any]) -> _Row:
        named: list[tuple[str, tuple[Any, ...] | None]] = []
        cells = dict(row) if isinstance(row, dict) else self._positional(row)
        for name, dims in cells.items():
            named.append((name, None if dims is None else tuple(dims)))
        texts = [dim for _, dims in named for dim in dims or () if isinstance(dim, str)]
        reads = frozenset().union(*(parse_cached(text).names for text in texts)) - cells.keys()
        return _Row(tuple(named), reads)

    def _positional(self, row: list[Any]) -> dict[str, Any]:
        if self.drawn and self.drawn[-1].variadic:
            fixed, last = self.drawn[:-1], self.drawn[-1].name
            count = len(fixed)
            tail = {f"{last}_{index}": dims for index, dims in enumerate(row[count:])}
            return {**{formal.name: dims for formal, dims in zip(fixed, row, strict=False)}, **tail}
        if len(row) > len(self.drawn):
            raise ManifestError(
                f"{self.item.source}: {self.item.operator}-{self.item.since_version}.shapes: found {len(row)} shapes, "
                f"expected at most {len(self.drawn)}"
            )
        return {formal.name: dims for formal, dims in zip(self.drawn, row, strict=False)}

    def _type_axes(self) -> list[Axis]:
        item, entry = self.item, self.item.entry
        primary = item.dtype_parameter
        used = {formal.type_name for formal in item.signature.inputs if self._ever_present(formal)}
        used |= entry.types.keys() | {primary}
        axes = []
        if primary is None:
            formals = item.signature.inputs or item.signature.outputs
            axes.append(Axis(_DTYPE, formals[0].elements[:1] if formals else ("float32",)))
        for name in sorted(used - {None} - entry.output_types.keys(), key=lambda one: (one != primary, str(one))):
            allowed = item.signature.types[str(name)]
            elements = entry.types.get(str(name), list(allowed))
            kept = sorted((one for one in elements if one in allowed), key=lambda one: one not in PAIRED_TYPES)
            axes.append(Axis(str(name), tuple(kept), sum(one in PAIRED_TYPES for one in kept) or None))
        return axes

    def _ever_present(self, formal: Parameter) -> bool:
        if formal.name in self.item.entry.grid:
            return True
        return any(
            dims is not None and formal.name in {name, _stem(name)} for row in self.rows for name, dims in row.dims
        )

    def _axes(self) -> list[Axis]:
        item, entry = self.item, self.item.entry
        axes = self._type_axes()
        axes += [Axis(name, tuple(_freeze(value) for value in values)) for name, values in entry.grid.items()]
        axes.append(Axis(_SHAPES, tuple(range(len(self.rows)))))
        axes.append(Axis(_OUTPUTS, tuple(entry.outputs) or (item.signature.min_outputs,)))
        axes.append(Axis(_DATA, tuple(entry.data)))
        axes.append(Axis(_MODE, tuple(entry.modes)))
        return [axis for axis in axes if axis.values or axis.name != _SHAPES]

    def _constraints(self) -> list[Constraint]:
        known = {axis.name for axis in self.axes}
        found = []
        shape_axes = frozenset({_SHAPES}).union(*(row.reads for row in self.rows)) & known
        inputs = {formal.name for formal in self.drawn}
        for text in self.item.entry.where:
            expression = parse_cached(text)
            needed = expression.names & known
            if expression.names & inputs or any(name in expression.names for row in self.rows for name, _ in row.dims):
                needed |= shape_axes
            if "dtype" in expression.names:
                needed |= {self.axes[0].name}
            if "outputs" in expression.names:
                needed |= {_OUTPUTS}
            found.append(Constraint(frozenset(needed), self._holds(expression)))
        dtype = self.axes[0].name
        found.append(
            Constraint(
                frozenset({dtype, _DATA}),
                lambda names: applies(str(names[_DATA]), str(names[dtype])),
            )
        )
        found.append(Constraint(frozenset({_SHAPES, _MODE}), self._mode_fits))
        return found

    def _holds(self, expression: Any) -> Any:  # noqa: ANN401
        where = f"{self.item.source}: {self.item.operator}-{self.item.since_version}.where"

        def holds(names: dict[str, object]) -> bool:
            try:
                return bool(expression(self._scope(names)))
            except ValueError as error:
                raise ManifestError(f"{where}: {error}") from error

        return holds

    def _mode_fits(self, names: dict[str, object]) -> bool:
        mode, row = names[_MODE], self.rows[int(str(names[_SHAPES]))]
        present = [dims for _, dims in row.dims if dims is not None]
        if mode == "initializer":
            return len(present) + len(self.by_value) > 1
        return mode == "static" or any(present)

    def _scope(self, names: Mapping[str, object]) -> dict[str, object]:
        """Names for expressions, from the axes chosen so far."""
        scope = dict(self.defaults)
        for name, value in names.items():
            if value is not None or name not in self.item.signature.attributes:
                scope[name] = value
            else:
                scope[name] = self.item.signature.attributes[name].default
        scope["dtype"] = names.get(self.axes[0].name)
        scope["outputs"] = names.get(_OUTPUTS)
        if _SHAPES in names:
            row = self.rows[int(str(names[_SHAPES]))]
            if all(name in scope for name in row.reads):
                shapes = row.resolve(scope)
                scope |= shapes
                for formal in self.drawn:
                    if formal.variadic:
                        scope[formal.name] = [dims for name, dims in shapes.items() if _stem(name) == formal.name]
        return scope

    def case(self, names: dict[str, Any]) -> Case:
        item = self.item
        scope = self._scope(names)
        shapes = tuple(self.rows[names[_SHAPES]].resolve(scope).items())
        type_axes = [axis.name for axis in self._type_axes_cached()]
        dtype = names[type_axes[0]]
        grid = [(name, names[name]) for name in item.entry.grid]
        attributes = tuple((n, v) for n, v in grid if n in item.signature.attributes and v is not None)
        values = tuple((n, v) for n, v in grid if n not in item.signature.attributes)
        wanted = names[_OUTPUTS]
        outputs = int(parse_cached(wanted)(scope)) if isinstance(wanted, str) else wanted
        first = next((dims for _, dims in shapes if dims is not None), ())
        parts: dict[str, Any] = {
            "types": tuple((name, names[name]) for name in type_axes[1:]),
            "attributes": attributes,
            "values": values,
            "shapes": shapes,
            "outputs": outputs,
            "data_class": "empty" if 0 in first else names[_DATA],
            "input_mode": names[_MODE],
        }
        shown = {**parts, "types": [(n, v) for n, v in parts["types"] if len(self._values(n)) > 1]}
        return Case(
            framework=item.framework,
            domain=item.domain,
            operator=item.operator,
            since_version=item.since_version,
            opset=item.opset,
            dtype=dtype,
            id=case_id(item, dtype, shown),
            **parts,
        )

    def _type_axes_cached(self) -> list[Axis]:
        count = len(self.axes) - len(self.item.entry.grid) - 4
        return self.axes[:count]

    def _values(self, name: str) -> tuple[object, ...]:
        return next(axis.values for axis in self.axes if axis.name == name)


def _freeze(value: object) -> Frozen:
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]
