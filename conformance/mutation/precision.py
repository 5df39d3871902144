"""Can every float operator and type see an error of a few bits? `python -m conformance.mutation.precision`.

For each float operator and element type of its newest version, passing cases are taken, and the compiler's outputs made
wrong in two ways: times 1 + 2^(3-p), and with 3 mantissa bits rounded away (p: mantissa bits of the type). At least one
case must turn red by one of them. An operator and type without such a case is listed: it needs one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from conformance.mutation.children import Died, Limits, run_children

WAYS = ("scaled by 8 units", "3 bits short")
MOST_CASES = 24
"""Cases tried at most for an operator and type."""

WITHOUT_VALUES = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators whose values are drawn: nothing can be said of a few bits (their distributions are tested instead)."""


@dataclass(frozen=True, slots=True)
class Cell:
    """An operator and type: the case that sees each way of being wrong ("" if none), and the passing cases tried."""

    operator: str
    dtype: str
    seen: dict[str, str]
    passing: int
    cases: int

    @property
    def is_seen(self) -> bool:
        """Whether some case turns red."""
        return any(self.seen.values())


def measure(part: int, parts: int) -> list[Cell]:
    """Return every `parts`-th operator's cells from `part` on. For children only."""
    import warnings

    from conformance.case import CaseInfo
    from conformance.suites import make_suite

    warnings.simplefilter("ignore")
    suite = make_suite("operators")
    newest: dict[str, int] = {}
    found: dict[tuple[str, str], list[CaseInfo]] = defaultdict(list)
    for info in suite.cases():
        if info.dtype.startswith(("float", "bfloat")) and info.operator not in WITHOUT_VALUES:
            name = f"{info.domain}.{info.operator}"
            newest[name] = max(newest.get(name, 0), info.since_version)
            found[name, info.dtype].append(info)
    cells = []
    for name in sorted(newest)[part::parts]:
        for (other, dtype), infos in sorted(found.items()):
            if other == name:
                chosen = [info for info in infos if info.since_version == newest[name]]
                cell = _cell(suite, name, dtype, chosen) if chosen else None
                cells += [cell] if cell is not None else []
    return cells


def _cell(suite: object, name: str, dtype: str, infos: Sequence[object]) -> Cell | None:
    """Try random data first; None for an operator none of whose results is a float."""
    from conformance.mutation.damages import DAMAGES, is_float
    from conformance.mutation.judging import judge, verdict
    from conformance.mutation.recording import with_answers

    seen = dict.fromkeys(WAYS, "")
    passing, has_floats = 0, False
    ordered = sorted(infos, key=lambda info: info.data_class != "random")[:MOST_CASES]  # type: ignore[attr-defined]
    for info in ordered:
        try:
            case = with_answers(info, suite.load(info))  # type: ignore[attr-defined, arg-type]
        except Exception:  # noqa: BLE001, S112 - a case that cannot be made is red, which the suite itself shows
            continue
        judged = judge(case)
        if judged.outcome not in ("passed", "folded") or judged.outputs is None:
            continue
        passing += 1
        has_floats |= any(is_float(value) for value in judged.outputs)
        for way in WAYS:
            if not seen[way] and verdict(case, DAMAGES[way](judged.outputs))[0] != "passed":
                seen[way] = case.id
        if all(seen.values()):
            break
    if passing and not has_floats:
        return None
    return Cell(name.removeprefix("ai.onnx."), dtype, seen, passing, len(infos))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check: 0 if every cell with a passing case sees an error of a few bits, else 1."""
    parser = argparse.ArgumentParser(prog="python -m conformance.mutation.precision", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--output", type=Path, default=Path("build/mutation"), help="where precision.json goes")
    options = parser.parse_args(arguments)
    console = Console()
    cells: list[Cell] = []
    tasks = [(part, partial(measure, part, options.jobs)) for part in range(options.jobs)]
    for _, result in run_children(tasks, options.jobs, Limits(), options.output / "precision.log"):
        if isinstance(result, Died):
            console.print(f"error: {result.cause}; see {options.output / 'precision.log'}", markup=False)
            return 2
        cells += result
    cells.sort(key=lambda cell: (cell.operator, cell.dtype))
    options.output.mkdir(parents=True, exist_ok=True)
    text = json.dumps([asdict(cell) for cell in cells], indent=2)
    (options.output / "precision.json").write_text(f"{text}\n", encoding="utf-8")
    return _report(cells, console)


def _report(cells: Sequence[Cell], console: Console) -> int:
    tried = [cell for cell in cells if cell.passing]
    blind = [cell for cell in tried if not cell.is_seen]
    for way in WAYS:
        count = sum(bool(cell.seen[way]) for cell in tried)
        console.print(f"{way}: {count} of {len(tried)} operators x types turn red")
    console.print(f"either: {len(tried) - len(blind)} of {len(tried)}; {len(cells) - len(tried)} have no passing case")
    for cell in blind:
        console.print(f"blind: {cell.operator} {cell.dtype} ({cell.passing} passing cases tried)", markup=False)
    return int(bool(blind))


if __name__ == "__main__":
    sys.exit(main())
