"""What exists and what must be tried: manifests, their schema, and the denominator that coverage is counted against."""

from opsets.cells import AttributeVersion, Cell, Denominator
from opsets.denominator import DOMAINS, denominator, find_item, named_operators, tolerance
from opsets.errors import ManifestError
from opsets.loader import Item, Manifest, load_manifest, load_manifests
from opsets.manifest import Draw, Entry, Ruling, Twin
from opsets.signature import Signature
from opsets.tolerance import Tolerance

__all__ = [
    "DOMAINS",
    "AttributeVersion",
    "Cell",
    "Denominator",
    "Draw",
    "Entry",
    "Item",
    "Manifest",
    "ManifestError",
    "Ruling",
    "Signature",
    "Tolerance",
    "Twin",
    "denominator",
    "find_item",
    "load_manifest",
    "load_manifests",
    "named_operators",
    "tolerance",
]
