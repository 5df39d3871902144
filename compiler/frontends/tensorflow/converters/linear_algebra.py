"""Bands and diagonals of matrices, determinants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from compiler.frontends.assembly import number, reshape
from compiler.frontends.tensorflow.site import Site, converts
from compiler.ops.compare import Select
from compiler.ops.indexing import Gather
from compiler.ops.linear_algebra import Determinant
from compiler.ops.padding import Trilu

if TYPE_CHECKING:
    from compiler.ir import Array, Value


@converts("MatrixDeterminant")
def determinant(site: Site) -> Value:
    """Of the matrices in the last two dims."""
    return site.op(Determinant, site.value(0))


@converts("MatrixBandPart")
def band(site: Site) -> Value:
    """Zeros beyond a number of diagonals below and above the main one; a negative number keeps all."""
    x, lower, upper = site.value(0), site.whole(1, "the number of diagonals"), site.whole(2, "the number of diagonals")
    if lower >= 0:
        x = site.op(Trilu, x, site.b.constant(np.array(-lower, np.int64)), upper=True)
    if upper >= 0:
        x = site.op(Trilu, x, site.b.constant(np.array(upper, np.int64)), upper=False)
    return x


@dataclass(frozen=True, slots=True)
class _Band:
    """Diagonals ``low`` to ``high`` of matrices of some size, packed in rows, each aligned left or right.

    Source: TensorFlow's MatrixDiagV3 (align says how superdiagonals, then how subdiagonals are aligned).
    """

    rows: int
    columns: int
    low: int
    high: int
    align: str

    @property
    def width(self) -> int:
        """Length of the longest diagonal."""
        return min(self.rows + min(self.high, 0), self.columns + min(-self.low, 0))

    def places(self) -> Array:
        """[diagonals, width]: the flat place in the matrix, or -1 where a row is filled up. The highest comes first."""
        found = np.full((self.high - self.low + 1, self.width), -1, np.int64)
        above, below = self.align.split("_")
        for row, diagonal in enumerate(range(self.high, self.low - 1, -1)):
            first = (max(-diagonal, 0), max(diagonal, 0))
            length = min(self.rows - first[0], self.columns - first[1])
            left = (diagonal >= 0 and above == "LEFT") or (diagonal <= 0 and below == "LEFT")
            start = 0 if left else self.width - length
            steps = np.arange(length)
            found[row, start : start + length] = (first[0] + steps) * self.columns + first[1] + steps
        return found


def _ends(site: Site, index: int) -> tuple[int, int]:
    found = site.ints(index, "the choice of diagonals")
    return found[0], found[-1]


def _align(site: Site) -> str:
    return str(site.attr("align")) if site.has("align") else "LEFT_LEFT"


@converts("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def diagonals(site: Site) -> Value:
    """Some diagonals, packed in rows; one alone has no dim for rows."""
    x = site.value(0)
    *lead, rows, columns = site.sizes(x)
    plain = site.operator == "MatrixDiagPart"
    low, high = (0, 0) if plain else _ends(site, 1)
    places = _Band(rows, columns, low, high, _align(site)).places()
    flat = reshape(site, x, [*lead, rows * columns])
    found = site.op(Gather, flat, site.b.constant(np.maximum(places, 0).reshape(-1)), axis=len(lead))
    if (places < 0).any():
        held = site.b.constant((places >= 0).reshape(-1))
        padding = site.value(2) if not plain else number(site, 0, x.tensor.element)
        found = site.op(Select, held, found, padding)
    return reshape(site, found, [*lead, *(places.shape if low != high else places.shape[1:])])


def _spread(site: Site, packed: Value, band: _Band, lead: list[int]) -> tuple[Value, Array]:
    """Packed diagonals at their places in [*lead, rows, columns], and which places these are."""
    places = band.places().reshape(-1)
    source = np.zeros(band.rows * band.columns, np.int64)
    held = np.zeros(band.rows * band.columns, np.bool_)
    inside = np.flatnonzero(places >= 0)
    source[places[inside]] = inside
    held[places[inside]] = True
    flat = reshape(site, packed, [*lead, places.size])
    found = site.op(Gather, flat, site.b.constant(source), axis=len(lead))
    shape = (band.rows, band.columns)
    return reshape(site, found, [*lead, *shape]), held.reshape(shape)


@converts("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
def from_diagonals(site: Site) -> Value:
    """Matrices with given diagonals, filled up with a number."""
    packed = site.value(0)
    sizes = list(site.sizes(packed))
    if site.operator == "MatrixDiag":
        low = high = 0
        rows = columns = sizes[-1]
        padding = number(site, 0, packed.tensor.element)
    else:
        low, high = _ends(site, 1)
        rows, columns = site.whole(2, "the number of rows"), site.whole(3, "the number of columns")
        padding = site.value(4)
        rows, columns = _completed(rows, columns, sizes[-1], low, high)
    lead = sizes[:-1] if low == high else sizes[:-2]
    found, held = _spread(site, packed, _Band(rows, columns, low, high, _align(site)), lead)
    return site.op(Select, site.b.constant(held), found, padding)


def _completed(rows: int, columns: int, width: int, low: int, high: int) -> tuple[int, int]:
    """Sizes of the smallest matrix that holds the diagonals, where they are -1."""
    least_rows, least_columns = width - min(high, 0), width + max(low, 0)
    if rows == -1 and columns == -1:
        size = max(least_rows, least_columns)
        return size, size
    return least_rows if rows == -1 else rows, least_columns if columns == -1 else columns


@converts("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def set_diagonals(site: Site) -> Value:
    """Matrices with some diagonals replaced."""
    x, packed = site.value(0), site.value(1)
    *lead, rows, columns = site.sizes(x)
    low, high = (0, 0) if site.operator == "MatrixSetDiag" else _ends(site, 2)
    found, held = _spread(site, packed, _Band(rows, columns, low, high, _align(site)), lead)
    return site.op(Select, site.b.constant(held), found, x)


@converts("Diag")
def diag(site: Site) -> Value:
    """Zeros of twice the rank with the elements where both halves of the place are the same."""
    x = site.value(0)
    sizes = list(site.sizes(x))
    count = int(np.prod(sizes))
    found = site.op(
        Select,
        site.b.constant(np.eye(count, dtype=np.bool_)),
        reshape(site, x, [count, 1]),
        number(site, 0, x.tensor.element),
    )
    return reshape(site, found, [*sizes, *sizes])


@converts("DiagPart")
def diag_part(site: Site) -> Value:
    """The other way."""
    x = site.value(0)
    sizes = list(site.sizes(x))
    half = sizes[: len(sizes) // 2]
    count = int(np.prod(half))
    flat = reshape(site, x, [count * count])
    return reshape(site, site.op(Gather, flat, site.integers(*range(0, count * count, count + 1)), axis=0), half)
