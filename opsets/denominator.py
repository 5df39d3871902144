"""What there is to be covered: the framework's own schema, whether or not a manifest reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from opsets.errors import ManifestError
from opsets.loader import Item, load_manifests
from opsets.signature import Signature, onnx_versions
from opsets.tolerance import Tolerance


@dataclass(frozen=True, slots=True)
class Cell:
    """One operator version and one element type that its schema allows for any input.

    ``tensor`` is false where the type only goes with a sequence or optional, or with an output of an operator without
    inputs: published counts of cells leave those out.
    """

    framework: str
    domain: str
    operator: str
    since_version: int
    dtype: str
    newest: bool
    tensor: bool = True


@dataclass(frozen=True, slots=True)
class AttributeVersion:
    """One attribute of one operator version."""

    framework: str
    domain: str
    operator: str
    since_version: int
    attribute: str
    newest: bool


@dataclass(frozen=True, slots=True)
class Denominator:
    """Everything that the framework's schema has. Deprecated versions are left out."""

    cells: tuple[Cell, ...]
    attributes: tuple[AttributeVersion, ...]
    pairs: tuple[tuple[str, int], ...]
    """(operator, since version)"""
    active: frozenset[str]
    """Operators whose newest version is not deprecated."""

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of operators, sorted."""
        return tuple(sorted({operator for operator, _ in self.pairs}))


@cache
def denominator(framework: str = "onnx", domain: str = "ai.onnx") -> Denominator:
    """The schema's own count of what can be tried.

    :raises ManifestError: if the framework's schema cannot be read here.
    """
    if framework != "onnx":
        raise ManifestError(f"denominator: found framework '{framework}', expected onnx")
    cells: list[Cell] = []
    attributes: list[AttributeVersion] = []
    pairs: list[tuple[str, int]] = []
    for operator, signature, newest in _signatures(domain):
        since = signature.since_version
        pairs.append((operator, since))
        tensors = signature.tensor_elements
        cells += [
            Cell(framework, domain, operator, since, element, newest, element in tensors)
            for element in signature.elements
        ]
        attributes += [
            AttributeVersion(framework, domain, operator, since, name, newest) for name in sorted(signature.attributes)
        ]
    active = frozenset(
        operator for (owner, operator), found in onnx_versions().items() if owner == domain and not found[-1].deprecated
    )
    return Denominator(tuple(cells), tuple(attributes), tuple(pairs), active)


def _signatures(domain: str) -> Iterator[tuple[str, Signature, bool]]:
    for (owner, operator), versions in sorted(onnx_versions().items()):
        if owner == domain:
            last = versions[-1].since_version
            yield from ((operator, one, one.since_version == last) for one in versions if not one.deprecated)


@cache
def _items(framework: str) -> dict[tuple[str, str, int], Item]:
    return {
        (item.domain, item.operator, item.since_version): item
        for manifest in load_manifests(framework)
        for item in manifest.items
    }


def find_item(framework: str, domain: str, operator: str, since_version: int) -> Item:
    """The manifest item of an operator version.

    :raises ManifestError: if no manifest has it.
    """
    item = _items(framework).get((domain, operator, since_version))
    if item is None:
        raise ManifestError(f"found no entry for {domain} {operator}-{since_version} in the manifests of {framework}")
    return item


def tolerance(
    operator: str, since_version: int, dtype: str, *, framework: str = "onnx", domain: str = "ai.onnx"
) -> Tolerance:
    """The named tolerance class of an operator version and element type. There is no default.

    :raises ManifestError: if no manifest names one.
    """
    return find_item(framework, domain, operator, since_version).tolerance(dtype)
