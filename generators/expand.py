"""Manifest -> cases. Yields ids and settings alone: nothing is drawn, rendered or built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from generators.case import Case, Frozen, case_id
from generators.pairwise import Axis, Constraint, select
from opsets import Item, Manifest, ManifestError, find_item, load_manifests
from opsets.elements import GROUP_OF, GROUPS
from opsets.expressions import Expression, parse
from opsets.signature import Parameter

NEWEST_CAP = 16
OLDER_CAP = 4
PAIRED_TYPES = frozenset({"float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool"})
"""Types that take part in pairs; of the others one case each is enough, since most backends refuse them whole."""

_DTYPE, _SETS, _SHAPES, _OUTPUTS, _DATA, _MODE = "$dtype", "$sets", "$shapes", "$outputs", "$data", "$mode"
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
    names: dict[str, object] = dict.fromkeys(item.names)
    names |= {
        "version": case.since_version,
        "outputs": case.outputs,
        "element": case.dtype,
        "data_class": case.data_class,
    }
    names |= {name: attribute.default for name, attribute in item.signature.attributes.items()}
    names |= dict(case.types) | dict(case.attributes) | dict(case.values)
    if item.dtype_parameter:
        names[item.dtype_parameter] = case.dtype
    shapes = dict(case.shapes)
    names["first"] = next(iter(shapes.values()), None)
    for formal in item.inputs:
        if formal.variadic or formal.kind == "sequence":
            names[formal.name] = [dims for name, dims in case.shapes if _stem(name) == formal.name]
        elif formal.name in shapes:
            names[formal.name] = shapes[formal.name]
    for name, text in item.entry.output_types.items():
        names[name] = parse_cached(text)(names)
    return names


def input_elements(case: Case) -> frozenset[str]:
    """Element types of all inputs that a case gives the operator: the cells of the denominator that it reaches."""
    item = find_item(case.framework, case.domain, case.operator, case.since_version)
    found = {case.dtype, *dict(case.types).values()}
    given = {name for name, value in (*case.values, *case.shapes) if value is not None}
    for formal in item.signature.inputs:
        if formal.type_name is None and formal.name in given:
            found.update(formal.elements)
    return frozenset(found)


def special_elements(case: Case) -> frozenset[str]:
    """Element types of the inputs that a case fills with NaN and infinities."""
    if case.data_class != "special":
        return frozenset()
    item = find_item(case.framework, case.domain, case.operator, case.since_version)
    types = {**dict(case.types), str(item.dtype_parameter): case.dtype}
    drawn = {name for name, dims in case.shapes if dims is not None and 0 not in dims}
    drawn |= {_stem(name) for name in drawn}
    found: set[str] = set()
    for formal in item.inputs:
        draw = item.entry.inputs.get(formal.name)
        if formal.name in drawn and (draw is None or (draw.draw == "class" and not draw.finite)):
            named = types.get(str(formal.type_name))
            found.update([named] if named else formal.elements if formal.type_name is None else [case.dtype])
    return frozenset(name for name in found if applies("special", name))


def set_attributes(case: Case) -> frozenset[str]:
    """Attributes that a case's node sets, with those that a template of its own always sets, such as bodies."""
    item = find_item(case.framework, case.domain, case.operator, case.since_version)
    required = {name for name, one in item.signature.attributes.items() if one.required}
    return frozenset({name for name, _ in case.attributes} | (required if item.entry.template != "node" else set()))


def applies(data_class: str, element: str) -> bool:
    """Whether a data class says something for an element type."""
    return GROUP_OF[element] in _GROUPS_OF_CLASS[data_class]


def _stem(name: str) -> str:
    return name.rpartition("_")[0]


def _cases(item: Item) -> Iterator[Case]:
    plan = _Plan(item)
    cap = (item.entry.cap or NEWEST_CAP) if item.newest else OLDER_CAP
    seen: set[str] = set()
    for row in select(plan.axes, plan.constraints, cap, plan.crossed):
        case = plan.case(dict(zip(plan.names, row, strict=True)))
        if case.id not in seen:
            seen.add(case.id)
            yield case
    if not seen:
        raise ManifestError(f"{item.source}: {item.operator}-{item.since_version}: found no case that meets 'where'")


parse_cached = cache(parse)


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the shape grid: shapes by input name, whose dims may be expressions, and settings."""

    dims: tuple[tuple[str, tuple[Any, ...] | None], ...]
    settings: Mapping[str, Frozen]
    reads: frozenset[str]

    def resolve(self, names: Mapping[str, object]) -> dict[str, tuple[int, ...] | None]:
        if not self.reads:
            return dict(self.dims)
        shapes: dict[str, tuple[int, ...] | None] = {}
        for name, dims in self.dims:
            scope = {**names, **shapes}
            shapes[name] = (
                dims
                if dims is None
                else tuple(int(parse_cached(dim)(scope)) if isinstance(dim, str) else dim for dim in dims)
            )
        return shapes


class _Plan:
    """Axes and constraints of one item."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.where = f"{item.source}: {item.operator}-{item.since_version}"
        self.settings = item.settings
        self.drawn = [formal for formal in item.inputs if formal.name not in self.settings]
        self.by_value = len(item.inputs) - len(self.drawn)
        self.variadic = {formal.name for formal in self.drawn if formal.variadic or formal.kind == "sequence"}
        self.rows = [self._row(row) for row in item.entry.shapes]
        self.sets = [{name: _freeze(value) for name, value in one.items()} for one in item.entry.sets]
        self.attribute_defaults = {name: one.default for name, one in item.signature.attributes.items()}
        self.home = self._homes()
        self.defaults: dict[str, object] = {
            **dict.fromkeys(item.names),
            "version": item.since_version,
            **self.attribute_defaults,
        }
        self.types = self._type_axes()
        self.axes = [*self.types, *self._other_axes()]
        self.names = [axis.name for axis in self.axes]
        self.crossed = [(self.names[0], _DATA), (self.names[0], _MODE)]
        self.shape_axes = self._shape_axes()
        self.output_axes = frozenset({_OUTPUTS}).union(
            *(self._needs(parse_cached(text).names) for text in item.entry.outputs if isinstance(text, str))
        )
        self.constraints = self._constraints()

    def _homes(self) -> dict[str, frozenset[str]]:
        """Axes that decide a setting."""
        homes: dict[str, set[str]] = {name: {name} for name in self.item.entry.grid}
        for axis, tables in ((_SETS, self.sets), (_SHAPES, [row.settings for row in self.rows])):
            for table in tables:
                for name in table:
                    homes.setdefault(name, set()).add(axis)
        return {name: frozenset(axes) for name, axes in homes.items()}

    def _row(self, row: list[Any] | dict[str, Any]) -> _Row:
        cells = dict(row) if isinstance(row, dict) else self._positional(row)
        settings = {name: _freeze(value) for name, value in cells.items() if name in self.settings}
        named = [
            (name, None if dims is None else tuple(dims)) for name, dims in cells.items() if name not in self.settings
        ]
        named = [one for name, dims in named for one in self._spread(name, dims)]
        texts = [dim for _, dims in named for dim in dims or () if isinstance(dim, str)]
        reads = frozenset().union(*(parse_cached(text).names for text in texts)) if texts else frozenset()
        return _Row(tuple(named), settings, reads)

    def _spread(self, name: str, dims: tuple[Any, ...] | None) -> list[tuple[str, tuple[Any, ...] | None]]:
        """A variadic input's list of shapes as one shape a name."""
        if name not in self.variadic or dims is None:
            return [(name, dims)]
        return [(f"{name}_{index}", tuple(one)) for index, one in enumerate(dims)]

    def _positional(self, row: list[Any]) -> dict[str, Any]:
        if self.drawn and self.drawn[-1].variadic:
            fixed, last = self.drawn[:-1], self.drawn[-1].name
            return {**dict(zip((formal.name for formal in fixed), row, strict=False)), last: row[len(fixed) :]}
        if len(row) > len(self.drawn):
            raise ManifestError(f"{self.where}.shapes: found {len(row)} shapes, expected at most {len(self.drawn)}")
        return {formal.name: dims for formal, dims in zip(self.drawn, row, strict=False)}

    def _type_axes(self) -> list[Axis]:
        item, entry = self.item, self.item.entry
        primary = item.dtype_parameter
        used = {formal.type_name for formal in item.inputs if self._ever_present(formal)}
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
        if formal.name in self.settings:
            return True
        return any(
            dims is not None and formal.name in {name, _stem(name)} for row in self.rows for name, dims in row.dims
        )

    def _other_axes(self) -> list[Axis]:
        item, entry = self.item, self.item.entry
        return [
            *(Axis(name, tuple(_freeze(value) for value in values)) for name, values in entry.grid.items()),
            *([Axis(_SETS, tuple(range(len(self.sets))))] if self.sets else []),
            Axis(_SHAPES, tuple(range(len(self.rows)))),
            Axis(_OUTPUTS, tuple(entry.outputs) or (item.signature.min_outputs,)),
            Axis(_DATA, tuple(entry.data)),
            Axis(_MODE, tuple(entry.modes)),
        ]

    def _shape_axes(self) -> frozenset[str]:
        """Axes that decide shapes: the rows, and what their expressions read."""
        found = {_SHAPES}
        for name in frozenset().union(*(row.reads for row in self.rows)):
            found |= self.home.get(name, frozenset({name} & set(self.names)))
        return frozenset(found)

    def _needs(self, names: frozenset[str]) -> frozenset[str]:
        """Axes that an expression over some names waits for."""
        found: set[str] = set()
        inputs = {"first", *(formal.name for formal in self.drawn)}
        for name in names:
            found |= self.home.get(name, frozenset())
            found |= {name} & {axis.name for axis in self.types}
            found |= self.shape_axes if name in inputs else set()
        found |= {self.axes[0].name} if "element" in names else set()
        found |= self.output_axes if "outputs" in names else set()
        found |= {_DATA} if "data_class" in names else set()
        return frozenset(found)

    def _constraints(self) -> list[Constraint]:
        dtype = self.axes[0].name
        found = [
            Constraint(frozenset({dtype, _DATA}), lambda names: applies(str(names[_DATA]), str(names[dtype]))),
            Constraint(frozenset({_SHAPES, _MODE}), self._mode_fits),
            Constraint(self.shape_axes | {_DATA}, self._data_fits),
        ]
        for text in self.item.entry.where:
            expression = parse_cached(text)
            found.append(Constraint(self._needs(expression.names), self._holds(expression)))
        return found

    def _holds(self, expression: Expression) -> Callable[[dict[str, object]], bool]:
        def holds(names: dict[str, object]) -> bool:
            try:
                return bool(expression(self.scope(names)))
            except ValueError as error:
                raise ManifestError(f"{self.where}.where: {error}") from error

        return holds

    def _mode_fits(self, names: dict[str, object]) -> bool:
        mode, row = names[_MODE], self.rows[int(str(names[_SHAPES]))]
        present = [dims for _, dims in row.dims if dims is not None]
        if mode == "initializer":
            return len(present) + self.by_value > 1
        return mode == "static" or any(present)

    def _data_fits(self, names: dict[str, object]) -> bool:
        """Without elements no data class says more than the first one."""
        first = self.scope(names)["first"]
        return names[_DATA] == self.item.entry.data[0] or (first is not None and 0 not in tuple(first))  # type: ignore[arg-type] # a shape

    def _chosen(self, names: Mapping[str, object]) -> dict[str, object]:
        """Settings by the axes chosen so far; None where left out."""
        chosen = {name: names[name] for name in self.item.entry.grid if name in names}
        if _SETS in names:
            chosen |= self.sets[int(str(names[_SETS]))]
        if _SHAPES in names:
            chosen |= self.rows[int(str(names[_SHAPES]))].settings
        return chosen

    def scope(self, names: Mapping[str, object]) -> dict[str, object]:
        """Names for expressions, from the axes chosen so far."""
        scope = dict(self.defaults)
        for name, value in self._chosen(names).items():
            scope[name] = self.attribute_defaults.get(name) if value is None else value
        scope |= {axis.name: names[axis.name] for axis in self.types if axis.name in names}
        scope["element"] = names.get(self.axes[0].name)
        scope["data_class"] = names.get(_DATA)
        if self.shape_axes <= names.keys():
            shapes = self.rows[int(str(names[_SHAPES]))].resolve(scope)
            scope |= {"first": next(iter(shapes.values()), None), **shapes}
            for name in self.variadic:
                scope[name] = [dims for key, dims in shapes.items() if _stem(key) == name]
        if self.output_axes <= names.keys():
            wanted = names[_OUTPUTS]
            scope["outputs"] = int(parse_cached(wanted)(scope)) if isinstance(wanted, str) else wanted
        return scope

    def case(self, names: dict[str, Any]) -> Case:
        item = self.item
        scope = self.scope(names)
        shapes = tuple(self.rows[names[_SHAPES]].resolve(scope).items())
        dtype = names[self.axes[0].name]
        chosen = self._chosen(names)
        settings: list[tuple[str, Any]] = [(name, chosen.get(name)) for name in self.settings]
        first = next((dims for _, dims in shapes if dims is not None), ())
        parts: dict[str, Any] = {
            "types": tuple((axis.name, names[axis.name]) for axis in self.types[1:]),
            "attributes": tuple(one for one in settings if one[0] in item.signature.attributes and one[1] is not None),
            "values": tuple(one for one in settings if one[0] not in item.signature.attributes),
            "shapes": shapes,
            "outputs": scope["outputs"],
            "data_class": "empty" if 0 in first else names[_DATA],
            "input_mode": names[_MODE],
        }
        told = {axis.name for axis in self.types[1:] if len(axis.values) > 1}
        shown = {**parts, "types": [one for one in parts["types"] if one[0] in told]}
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


def _freeze(value: object) -> Frozen:
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]
