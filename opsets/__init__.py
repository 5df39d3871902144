"""What exists and what must be tried: manifests, their schema, and the denominator that coverage is counted against."""

from opsets.denominator import AttributeVersion, Cell, Denominator, denominator, find_item, tolerance
from opsets.errors import ManifestError
from opsets.loader import Item, Manifest, load_manifest, load_manifests
from opsets.manifest import Draw, Entry, Ruling, Twin
from opsets.signature import Signature
from opsets.tolerance import Tolerance

__all__ = [
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
    "tolerance",
]
