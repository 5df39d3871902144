"""Stall-free cycles of a matrix array, by its dataflow: what lowering ranks choices by and the simulator charges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from compiler.targets.schema import Dataflow, Matrix


def _output_stationary(matrix: Matrix, m: int, n: int, k: int) -> tuple[int, int]:
    return math.ceil(m / matrix.rows) * math.ceil(n / matrix.columns), k + matrix.rows + matrix.columns - 2


def _weight_stationary(matrix: Matrix, m: int, n: int, k: int) -> tuple[int, int]:
    return math.ceil(k / matrix.rows) * math.ceil(n / matrix.columns), m + 2 * matrix.rows + matrix.columns - 2


def _input_stationary(matrix: Matrix, m: int, n: int, k: int) -> tuple[int, int]:
    return math.ceil(k / matrix.rows) * math.ceil(m / matrix.columns), n + 2 * matrix.rows + matrix.columns - 2


_FOLDS: Final[dict[Dataflow, Callable[[Matrix, int, int, int], tuple[int, int]]]] = {
    Dataflow.OUTPUT_STATIONARY: _output_stationary,
    Dataflow.WEIGHT_STATIONARY: _weight_stationary,
    Dataflow.INPUT_STATIONARY: _input_stationary,
}


def matmul_cycles(
    matrix: Matrix, m: int, n: int, k: int, *, batch: int = 1, depth: int = 1, dataflow: Dataflow | None = None
) -> int:
    """Cycles of ``batch`` products m x n x k in a dataflow (None: the array's own): folds times the cycles of a fold.

    The closed forms that reproduce SCALE-Sim's stall-free cycles, plus the one cycle that its count of the last index
    leaves out: os ceil(m/R) ceil(n/C) (k + R + C - 2); ws ceil(k/R) ceil(n/C) (m + 2R + C - 2); is with m and n
    exchanged. ``depth`` products along k are added in a cell each cycle. With ``hide_preload`` the stationary tiles
    after the first load while the array works: (2R - 1) + (F - 1) max(s, R, 4) + (R + C - 2 + max(s, 4)) for F folds
    that stream s rows each. Output stationary there is nothing to load, and a fold's sums leave, a row a cycle, under
    the next fold: (F - 1) max(k, R) + k + R + C - 2. Of pruned weights only what is left along k counts.
    """
    if batch == 0 or m == 0 or n == 0:
        return 0
    flow = dataflow or matrix.dataflow
    kept = k if matrix.pruned is None else matrix.pruned.length(k)
    steps = max(1, math.ceil(kept / depth))
    folds, each = _FOLDS[flow](matrix, m, n, steps)
    folds *= batch
    if not matrix.hide_preload:
        return folds * each
    rows, columns = matrix.rows, matrix.columns
    if flow is Dataflow.OUTPUT_STATIONARY:
        return (folds - 1) * max(steps, rows) + each
    streamed = m if flow is Dataflow.WEIGHT_STATIONARY else n
    return (2 * rows - 1) + (folds - 1) * max(streamed, rows, 4) + (rows + columns - 2 + max(streamed, 4))
