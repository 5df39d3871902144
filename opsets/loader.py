"""Reads manifests, checks them against the framework's own schema, and resolves each entry at each version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import yaml
from pydantic import ValidationError

from opsets.elements import GROUP_OF
from opsets.errors import ManifestError
from opsets.expressions import FUNCTIONS, parse
from opsets.manifest import Entry, File, Overrides
from opsets.signature import Parameter, Signature, newest_opset, onnx_versions
from opsets.tolerance import Tolerance, parse_tolerance

ROOT = Path(__file__).parent
WRITTEN_FOR = 28
"""Opset of ai.onnx that the manifests know: with an older onnx, names that it lacks are passed over."""
_Model = TypeVar("_Model", File, Overrides, Entry)
_TYPE_OF_UNION = re.compile(r".*\[.*|int|float|str|bool|dict|none")
"""Parts of pydantic's paths that name the tried member of a union and no key of the file."""
_BUILT_IN = ("version", "outputs", "element", "data_class", "first")
_MERGED = ("grid", "inputs", "types", "output_types", "tolerance")


@dataclass(frozen=True, slots=True)
class Item:
    """An entry resolved at one operator version: everything that expansion needs."""

    framework: str
    domain: str
    operator: str
    since_version: int
    opset: int
    newest: bool
    entry: Entry
    signature: Signature
    names: frozenset[str]
    """Names that expressions may read: of any version, so that one constraint serves all."""
    source: str

    @property
    def settings(self) -> tuple[str, ...]:
        """Names that a case sets by value, in the order of the entry: attributes, inputs by value, parameters."""
        entry = self.entry
        names = [*entry.grid, *(name for one in entry.sets for name in one)]
        fixed = {*self.signature.attributes, *entry.parameters, *entry.by_value, *names}
        rows = [row for row in entry.shapes if isinstance(row, dict)]
        return tuple(dict.fromkeys([*names, *(name for row in rows for name in row if name in fixed)]))

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        """The node's inputs and those of the graph beside them."""
        return (*self.signature.inputs, *(_beside(name, type_name) for name, type_name in self.entry.extra.items()))

    @property
    def dtype_parameter(self) -> str | None:
        """The type parameter that a case's dtype stands for; None where the schema fixes the type."""
        if self.entry.dtype is not None:
            return self.entry.dtype
        formals = self.signature.inputs or self.signature.outputs
        return formals[0].type_name if formals else None

    def tolerance(self, dtype: str) -> Tolerance:
        """The tolerance class for an element type.

        :raises ManifestError: if the entry names none.
        """
        classes = self.entry.tolerance
        text = classes.get(dtype) or classes.get(GROUP_OF.get(dtype, "")) or classes.get("all")
        if text is None:
            raise ManifestError(f"{self.source}: {self.operator}.tolerance: found no class for {dtype}, expected one")
        return parse_tolerance(text)


def _beside(name: str, type_name: str) -> Parameter:
    """A graph input beside the node's: its type is a type parameter of the operator or an element."""
    fixed = (type_name,) if type_name in GROUP_OF else ()
    return Parameter(name, None if fixed else type_name, fixed, "tensor", optional=True, variadic=False)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One manifest file, resolved: its items in the order of the file, versions oldest first."""

    framework: str
    domain: str
    family: str
    path: Path
    items: tuple[Item, ...]


@cache
def load_manifests(framework: str = "onnx") -> tuple[Manifest, ...]:
    """All manifests of a framework that the project ships, by file name.

    :raises ManifestError: if one of them breaks the schema.
    """
    folder = ROOT / framework
    if not folder.is_dir():
        known = ", ".join(sorted(path.name for path in ROOT.iterdir() if any(path.glob("*.yaml"))))
        raise ManifestError(f"{folder}: framework '{framework}' has no manifests, expected one of {known}")
    return tuple(load_manifest(path) for path in sorted(folder.glob("*.yaml")))


def load_manifest(path: Path) -> Manifest:
    """Read one manifest file.

    :raises ManifestError: one line with file, line and key for the first thing that is wrong.
    """
    document = _Document(path)
    file = document.check(File, document.data, ())
    items: list[Item] = []
    for operator, body in file.operators.items():
        where: tuple[str | int, ...] = ("operators", operator)
        base = _merge(file.defaults, body or {})
        overrides = document.check(Overrides, base, where)
        versions = onnx_versions().get((file.domain, operator)) if file.framework == "onnx" else None
        if versions is None:
            if overrides.since > newest_opset(file.domain):
                continue
            document.fail(where, f"found operator '{operator}', expected one of {file.domain} in {file.framework}")
        items += _versions(document, file, operator, base, versions)
    return Manifest(file.framework, file.domain, file.family, path, tuple(items))


def _versions(
    document: _Document, file: File, operator: str, base: Mapping[str, Any], versions: tuple[Signature, ...]
) -> Iterator[Item]:
    where = ("operators", operator)
    known = {
        name for one in versions for name in (*one.attributes, *one.types, *(formal.name for formal in one.inputs))
    }
    known |= _default_names(file)
    if newest_opset("ai.onnx") < WRITTEN_FOR:
        known |= _words(base) - FUNCTIONS.keys()
    ranges = {text: _range(document, (*where, "versions", text)) for text in base.get("versions", {})}
    last = max(one.since_version for one in versions)
    for signature in versions:
        if signature.deprecated:
            continue
        body = {key: value for key, value in base.items() if key != "versions"}
        for text, (low, high) in ranges.items():
            if low <= signature.since_version <= high:
                body = _merge(body, base["versions"][text])
        entry = document.check(Entry, body, where)
        _check_names(document, where, entry, signature, known)
        names = frozenset({*known, *entry.parameters, *entry.extra, *_BUILT_IN})
        _check_expressions(document, where, entry, names)
        yield Item(
            framework=file.framework,
            domain=file.domain,
            operator=operator,
            since_version=signature.since_version,
            opset=newest_opset(file.domain) if signature.since_version == last else signature.since_version,
            newest=signature.since_version == last,
            entry=_fit(entry, signature),
            signature=signature,
            names=names,
            source=f"{document.path.name}:{document.line(where)}",
        )


def _words(body: object) -> set[str]:
    """Every word of an entry: an older onnx does not tell a mistake from a name that it does not have yet."""
    if isinstance(body, dict):
        return {str(key) for key in body}.union(*map(_words, body.values()))
    if isinstance(body, list):
        return set().union(*map(_words, body))
    return set(re.findall(r"[A-Za-z_]\w*", body)) if isinstance(body, str) else set()


def _default_names(file: File) -> set[str]:
    """Names in a file's defaults: they need not go with every operator of the family."""
    bodies = [file.defaults, *file.defaults.get("versions", {}).values()]
    return {name for body in bodies for key in ("grid", "inputs") for name in body.get(key, {})}


def _check_names(
    document: _Document, where: tuple[str, str], entry: Entry, signature: Signature, known: set[str]
) -> None:
    """Refuse names that no version of the operator has; those of other versions only are left out by :func:`_fit`."""
    inputs = {formal.name for formal in signature.inputs}
    settable = known | {*entry.parameters, *entry.extra}
    used: list[tuple[tuple[str | int, ...], str]] = [(("grid", key), key) for key in entry.grid]
    used += [(("sets", at, key), key) for at, one in enumerate(entry.sets) for key in one]
    used += [(("shapes", at, key), key) for at, row in enumerate(entry.shapes) if isinstance(row, dict) for key in row]
    for path, key in used:
        if key not in settable:
            expected = ", ".join(sorted({*signature.attributes, *inputs, *entry.parameters}))
            document.fail((*where, *path), f"found '{key}', expected an attribute, input or parameter: {expected}")
    for name in entry.inputs:
        if name not in settable:
            document.fail((*where, "inputs", name), f"found '{name}', expected an input: {', '.join(sorted(inputs))}")
    expected = ", ".join(sorted(signature.types)) or "none"
    for name in entry.types:
        if name not in known:
            document.fail((*where, "types", name), f"found '{name}', expected a type parameter: {expected}")
    if entry.dtype is not None and entry.dtype not in signature.types:
        document.fail((*where, "dtype"), f"found '{entry.dtype}', expected a type parameter: {expected}")
    if entry.template == "node":
        _check_required(document, where, entry, signature)


def _check_expressions(document: _Document, where: tuple[str, str], entry: Entry, names: frozenset[str]) -> None:
    texts: list[tuple[tuple[str | int, ...], str]] = [(("where", at), text) for at, text in enumerate(entry.where)]
    texts += [(("output_shapes", name), text) for name, text in entry.output_shapes.items()]
    texts += [(("output_types", name), text) for name, text in entry.output_types.items()]
    for path, text in texts:
        if unknown := parse(text).names - names:
            document.fail((*where, *path), f"found name '{min(unknown)}', expected one of {', '.join(sorted(names))}")


def _check_required(document: _Document, where: tuple[str, str], entry: Entry, signature: Signature) -> None:
    tables: list[list[dict[str, Any]]] = [entry.sets, [row for row in entry.shapes if isinstance(row, dict)]]
    for name, attribute in signature.attributes.items():
        if not attribute.required or None not in entry.grid.get(name, [None]):
            continue
        if not any(table and all(row.get(name) is not None for row in table) for table in tables):
            document.fail((*where, "grid"), f"found no value for attribute '{name}', expected one: it is required")


def _fit(entry: Entry, signature: Signature) -> Entry:
    """The entry without what this version does not have."""
    keep = (
        {formal.name for formal in signature.inputs} | signature.attributes.keys() | {*entry.parameters, *entry.extra}
    )

    def kept(table: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in table.items() if key in keep}

    return entry.model_copy(
        update={
            "grid": kept(entry.grid),
            "sets": [kept(one) for one in entry.sets],
            "shapes": [kept(row) if isinstance(row, dict) else row for row in entry.shapes],
            "types": {name: elements for name, elements in entry.types.items() if name in signature.types},
        }
    )


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` wins key by key; the tables of :data:`_MERGED` are merged one level deeper."""
    result = {**base, **over}
    for key in _MERGED:
        if isinstance(base.get(key), dict) and isinstance(over.get(key), dict):
            result[key] = {**base[key], **over[key]}
    return result


def _range(document: _Document, where: tuple[str, ...]) -> tuple[int, int]:
    text = str(where[-1])
    low, plus, high = text.partition("+") if text.endswith("+") else text.partition("-")
    if not low.isdigit() or not (high.isdigit() or not high):
        document.fail(where, f"found '{text}', expected a range of versions such as 7, 1-6 or 13+")
    if plus == "+":
        return int(low), 1 << 30
    return int(low), int(high or low)


class _Document:
    """A YAML document with the line of each key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        loader_class = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            loader = loader_class(path.read_text(encoding="utf-8"))
            self.node = loader.get_single_node()
            self._refuse_duplicates(self.node)  # before merge keys are resolved: what they bring may be overridden
            self.data = loader.construct_document(self.node) if self.node is not None else None
        except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark else 1
            problem = getattr(error, "problem", None) or str(error).splitlines()[0]
            raise ManifestError(f"{path}:{line}: found no valid YAML: {problem}") from error

    def check(self, model: type[_Model], data: object, where: tuple[str | int, ...]) -> _Model:
        """Validate data that stands at ``where`` in the document."""
        try:
            return model.model_validate(data)
        except ValidationError as error:
            first: Any = max(error.errors(), key=lambda one: (len(one["loc"]), one["type"] == "extra_forbidden"))
            found = "" if first["type"] == "missing" else f"found {first['input']!r:.80}, "
            keys: list[str | int] = [part for part in first["loc"] if not _TYPE_OF_UNION.fullmatch(str(part))]
            self.fail((*where, *keys), f"{found}{first['msg'].removeprefix('Value error, ')}")

    def fail(self, where: tuple[str | int, ...], message: str) -> NoReturn:
        """Refuse, with the line of the nearest key that the document has."""
        keys = [str(part) for part in where]
        raise ManifestError(f"{self.path}:{self.line(where)}: {'.'.join(keys)}: {message}")

    def line(self, where: tuple[str | int, ...]) -> int:
        """Line, from 1, of the deepest key of a path that the document has."""
        node, line = self.node, 1
        for part in where:
            if isinstance(node, yaml.MappingNode):
                pair = next((pair for pair in reversed(node.value) if pair[0].value == str(part)), None)
                if pair is None:
                    break
                line, node = pair[0].start_mark.line + 1, pair[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                line = node.start_mark.line + 1
            else:
                break
        return line

    def _refuse_duplicates(self, node: yaml.Node | None) -> None:
        """YAML would let the later of two equal keys win in silence."""
        children: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if key.value in seen and key.value != "<<":
                    raise ManifestError(
                        f"{self.path}:{key.start_mark.line + 1}: {key.value}: found the key twice, expected it once"
                    )
                seen.add(key.value)
                children.append(value)
        elif isinstance(node, yaml.SequenceNode):
            children = list(node.value)
        for child in children:
            self._refuse_duplicates(child)
