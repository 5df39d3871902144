"""`python -m conformance.mutation`: put known faults into the compiler and the comparator, and see who notices."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from conformance.errors import ConformanceError, MutationError
from conformance.mutation.children import Died, Limits, run_children
from conformance.mutation.edits import Fault
from conformance.mutation.generated import SHARES, generated_faults
from conformance.mutation.handwritten import equivalent_reasons, handwritten_faults, reason_for
from conformance.mutation.pool import Pool, load_pool
from conformance.mutation.report import FaultRecord, RecordWriter, Status, print_report, record_of, write_summary
from conformance.mutation.selection import is_reached, select_cases
from conformance.mutation.trial import Trial, load_modules, only_by_import, try_fault

_PRELOADED = (
    "duckdb", "generators", "hypothesis", "jinja2", "ml_dtypes", "numpy", "onnx.reference", "onnxruntime", "opsets",
    "pydantic", "pytest", "reports", "scipy.special", "yaml",
)  # fmt: skip
"""What children need and no fault is in: loaded once, before the first fork."""

_LIMITS = Limits(cpu_seconds=30, memory_mb=6000, wall_seconds=1800)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check: 0 if nothing survived, 1 if something did, 2 for a request that cannot be served."""
    options = _parser().parse_args(arguments)
    console = Console()
    for module in _PRELOADED:
        importlib.import_module(module)
    try:
        faults = _faults(options)
        records = _run(faults, options, console)
    except ConformanceError as error:
        console.print(f"error: {error}", markup=False)
        return 2
    write_summary(records, options.output)
    print_report(records, console)
    return int(any(record.status is Status.SURVIVED for record in records))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance.mutation", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--handwritten", action="store_true", help="only the hand-written faults")
    which.add_argument("--generated", action="store_true", help="only the generated faults")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="faults whose id starts so")
    parser.add_argument("--jobs", type=int, default=2, help="faults tried at a time")
    parser.add_argument("--seed", type=int, default=1, help="of the draw of generated faults")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="use one case in N of the suite")
    parser.add_argument("--no-unit-tests", action="store_true", help="leave out the second line of defence")
    parser.add_argument("--output", type=Path, default=Path("build/mutation"), help="where records go")
    return parser


def _faults(options: argparse.Namespace) -> list[Fault]:
    found = [] if options.generated else handwritten_faults()
    found += [] if options.handwritten else generated_faults(seed=options.seed)
    return [fault for fault in found if not options.only or fault.id.startswith(tuple(options.only))]


def _run(faults: Sequence[Fault], options: argparse.Namespace, console: Console) -> list[FaultRecord]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        recording = progress.add_task("cases and their lines", total=1)
        pool = load_pool(options.output, options.jobs, options.share)
        progress.advance(recording)
        return list(_tried(faults, pool, options, progress))


def _tried(
    faults: Sequence[Fault], pool: Pool, options: argparse.Namespace, progress: Progress
) -> Iterator[FaultRecord]:
    """Try faults that only an import can put in, then import everything once and patch the others in."""
    bar = progress.add_task("faults", total=len(faults))
    by_id = {fault.id: fault for fault in faults}
    known = {fault.id: reason_for(fault, equivalent_reasons()) for fault in faults}
    by_import = _imported_ones(faults, options)
    writer = RecordWriter(options.output)
    for imported in (True, False):
        if not imported:
            load_modules(faults)
        tasks = [
            (
                fault.id,
                partial(
                    try_fault,
                    fault,
                    [pool.cases[place] for place in select_cases(fault, pool)],
                    by_import=imported,
                    unit_tests_too=not options.no_unit_tests and not known[fault.id],
                    log=options.output / "unit-tests.log",
                ),
            )
            for fault in faults
            if (fault.id in by_import) is imported
        ]
        for identity, result in run_children(tasks, options.jobs, _LIMITS, options.output / "suite.log"):
            if isinstance(result, Died) and result.raised:
                raise MutationError(f"trying {identity} failed: {result.cause}; see {options.output / 'suite.log'}")
            trial = Trial("crash", result.cause) if isinstance(result, Died) else result
            record = _record(by_id[identity], trial, known[identity], reached=is_reached(by_id[identity], pool))
            writer.write(record)
            progress.advance(bar)
            yield record


def _imported_ones(faults: Sequence[Fault], options: argparse.Namespace) -> set[str]:
    """Return the ids of faults that only an import can put in. A child finds out: nothing may be imported here yet."""
    ((_, found),) = run_children([(0, partial(only_by_import, faults))], 1, Limits(), options.output / "suite.log")
    if isinstance(found, Died):
        raise MutationError(f"importing the modules failed: {found.cause}; see {options.output / 'suite.log'}")
    return set(found)


def _record(fault: Fault, trial: Trial, equivalent: str, *, reached: bool) -> FaultRecord:
    status = Status.SURVIVED
    if trial.case:
        status = Status.SUITE
    elif equivalent:
        status = Status.EQUIVALENT
    elif trial.unit_test:
        status = Status.UNIT_TESTS
    elif trial.figures_changed:
        status = Status.FIGURES
    return record_of(
        fault,
        _package(fault),
        status,
        seen_by=trial.case or trial.unit_test,
        reason=equivalent if status is Status.EQUIVALENT else trial.reason,
        cases_tried=trial.tried,
        reached=reached,
        figures_changed=trial.figures_changed,
        cpu_seconds=round(trial.cpu_seconds, 2),
    )


def _package(fault: Fault) -> str:
    named = (package for package in SHARES if fault.path.startswith(f"{package}/"))
    return next(named, str(Path(fault.path).parent))


if __name__ == "__main__":
    sys.exit(main())
