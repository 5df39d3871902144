"""What there is to be covered: each framework's own schema, whether or not a manifest reaches it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final

from opsets.caffe.manifest import known_layers, load_layers, scope
from opsets.cells import AttributeVersion, Cell, Denominator
from opsets.errors import ManifestError
from opsets.loader import Item, load_manifests
from opsets.signature import Signature, onnx_versions
from opsets.tensorflow_manifest import excluded_operators, load_tensorflow_manifests, tensorflow_cells
from opsets.tolerance import Tolerance
from opsets.torch_manifest import TYPES as TORCH_TYPES
from opsets.torch_manifest import core_overloads, covered_operators, load_torch_manifests


@cache
def denominator(framework: str = "onnx", domain: str = "ai.onnx") -> Denominator:
    """The schema's own count of what can be tried, of a framework that need not be installed; ONNX's is the package's.

    :raises ManifestError: for a framework or a domain that has none.
    """
    if domain not in DOMAINS.get(framework, ()):
        known = ", ".join(f"{name} {one}" for name, domains in DOMAINS.items() for one in domains)
        raise ManifestError(f"denominator: found framework '{framework}' and domain '{domain}', expected {known}")
    return _SCHEMAS[framework](domain)


def _onnx(domain: str) -> Denominator:
    framework = "onnx"
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


def _torch(domain: str) -> Denominator:
    """Core operators, and those that a manifest names; a manifest's entry is a row, with its element types."""
    overloads = core_overloads()
    cells = [
        Cell("torch", domain, item.operator, 0, element, newest=True)
        for item in load_torch_manifests()
        for element in TORCH_TYPES[item.entry.types]
    ]
    core = tuple(sorted({name.partition(".")[0] for name in overloads}))
    known = covered_operators()
    cells += [Cell("torch", domain, name, 0, "", newest=True) for name in core if name not in known]
    pairs = tuple(dict.fromkeys((cell.operator, 0) for cell in cells))
    groups = {"core operators": core, "core overloads": overloads}
    return Denominator(tuple(cells), (), pairs, known | set(core), groups=groups)


def _caffe(domain: str) -> Denominator:
    """Every layer of the second format; blobs are float32."""
    cells = tuple(Cell("caffe", domain, name, 2, "float32", newest=True) for name in known_layers())
    pairs = tuple((cell.operator, cell.since_version) for cell in cells)
    return Denominator(cells, (), pairs, frozenset(known_layers()), scope().excluded)


def _tensorflow(_domain: str) -> Denominator:
    """Raw operators in scope, with the element types that their definitions allow; the others have a reason each."""
    cells = tensorflow_cells()
    pairs = tuple(dict.fromkeys((cell.operator, 0) for cell in cells))
    active = frozenset(operator for operator, _ in pairs)
    return Denominator(cells, (), pairs, active, dict(excluded_operators()))


_SCHEMAS: Final[Mapping[str, Callable[[str], Denominator]]] = {
    "onnx": _onnx,
    "torch": _torch,
    "tensorflow": _tensorflow,
    "caffe": _caffe,
}
DOMAINS: Final[Mapping[str, tuple[str, ...]]] = {
    "onnx": ("ai.onnx", "ai.onnx.ml"),
    "torch": ("aten",),
    "tensorflow": ("raw_ops",),
    "caffe": ("caffe",),
}
"""The frameworks that have a denominator, and their domains."""


def _signatures(domain: str) -> Iterator[tuple[str, Signature, bool]]:
    for (owner, operator), versions in sorted(onnx_versions().items()):
        if owner == domain:
            last = versions[-1].since_version
            yield from ((operator, one, one.since_version == last) for one in versions if not one.deprecated)


def named_operators(framework: str) -> frozenset[tuple[str, int]]:
    """(operator, since version) of all that a framework's manifests try. Raises ManifestError where it has none."""
    if framework not in _NAMED:
        raise ManifestError(f"found framework '{framework}', which has no manifests, expected {', '.join(_NAMED)}")
    return _NAMED[framework]()


def _named_onnx() -> frozenset[tuple[str, int]]:
    return frozenset((item.operator, item.since_version) for file in load_manifests("onnx") for item in file.items)


def _named_torch() -> frozenset[tuple[str, int]]:
    return frozenset((item.operator, 0) for item in load_torch_manifests())


def _named_tensorflow() -> frozenset[tuple[str, int]]:
    return frozenset((item.operator, 0) for item in load_tensorflow_manifests())


def _named_caffe() -> frozenset[tuple[str, int]]:
    return frozenset((name, 2) for name in load_layers())


_NAMED: Final[Mapping[str, Callable[[], frozenset[tuple[str, int]]]]] = {
    "onnx": _named_onnx,
    "torch": _named_torch,
    "tensorflow": _named_tensorflow,
    "caffe": _named_caffe,
}


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
