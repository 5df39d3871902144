"""Commands about the records of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from opatlas.session import NO, JsonOption, Session, examples
from reports.execution import rows_table

if TYPE_CHECKING:
    from reports import Difference

app = typer.Typer()


@app.command(
    epilog=examples(
        "opatlas report build/coverage",
        "opatlas report build/coverage/records.jsonl -o report",
        "opatlas report build/coverage --against older/records.jsonl --fail-on regression",
        "opatlas report build/versions/* -o build/versions   # versions side by side",
    )
)
def report(
    context: typer.Context,
    records: Annotated[
        list[Path], typer.Argument(metavar="RECORDS...", help="A records file or the folder of a run, or several.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the reports.")] = Path("build/coverage"),
    against: Annotated[Path | None, typer.Option(metavar="OLDER", help="An older run to compare with.")] = None,
    fail_on: Annotated[
        Literal["nothing", "regression", "change"], typer.Option(help="What makes the exit status 1.")
    ] = "nothing",
    as_json: JsonOption = False,
) -> None:
    """Write the HTML, JSON, CSV and JUnit reports of a run and print its summary.

    Of several runs: one column each with its versions, and what changed from each to the next, in HTML and JSON.
    """
    from reports import diff as compare_runs
    from reports import write_reports
    from reports.terminal import difference_text, summary_text

    session: Session = context.obj
    if len(records) > 1:
        if against is not None:
            raise typer.BadParameter("several runs are compared with each other", param_hint="--against")
        _report_versions(session, records, output, fail_on, as_json=as_json)
        return
    with session.working("writing reports"):
        summary = write_reports(records[0], output)
        difference = None if against is None else compare_runs(against, records[0])
    if as_json:
        data = json.loads(summary.model_dump_json(by_alias=True))
        both = None if difference is None else {"summary": data, "difference": difference.model_dump(mode="json")}
        session.show_json(both or data)
    else:
        session.show(summary_text(summary))
        session.show(Text(f"written: {output / 'index.html'}"))
        if difference is not None:
            session.show(difference_text(difference))
    if difference is not None:
        _leave(difference, fail_on)


def _report_versions(session: Session, records: list[Path], output: Path, fail_on: str, *, as_json: bool) -> None:
    from reports.versions import versions_text, write_versions

    with session.working("comparing versions"):
        matrix, page = write_versions(records, output)
    if as_json:
        session.show_json(matrix.model_dump(mode="json"))
    else:
        session.show(versions_text(matrix))
        session.show(Text(f"written: {page}"))
    for step in matrix.steps:
        _leave(step.difference, fail_on)


@app.command(
    epilog=examples(
        "opatlas diff older/records.jsonl build/coverage/records.jsonl",
        "opatlas diff older newer --fail-on change --json",
        "opatlas diff build/before build/after   # folders of `opatlas simulate --report`",
    )
)
def diff(
    context: typer.Context,
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Records of the older run, or its report.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Records of the newer run, or its report.")],
    fail_on: Annotated[
        Literal["nothing", "regression", "change"], typer.Option(help="What makes the exit status 1.")
    ] = "regression",
    as_json: JsonOption = False,
) -> None:
    """Compare two runs: regressions, fixes, cycles, and what only the suite changed.

    Of two reports of `opatlas simulate --report`: cycles, traffic and energy in all and by operator; a regression is a
    run that takes more cycles.
    """
    from reports import diff as compare_runs
    from reports.performance import is_performance
    from reports.terminal import difference_text

    session: Session = context.obj
    if is_performance(old) and is_performance(new):
        _diff_performance(session, old, new, fail_on, as_json=as_json)
        return
    difference = compare_runs(old, new)
    if as_json:
        session.show_json(difference.model_dump(mode="json"))
    else:
        session.show(difference_text(difference))
    _leave(difference, fail_on)


def _diff_performance(session: Session, old: Path, new: Path, fail_on: str, *, as_json: bool) -> None:
    from reports.performance import read_performance
    from reports.performance_diff import compare_performance, performance_difference_text

    difference = compare_performance(read_performance(old), read_performance(new))
    if as_json:
        session.show_json(difference)
    else:
        session.show(performance_difference_text(difference))
    slower, changed = difference["totals"]["cycles"]["change"] > 0, difference["is_changed"]
    if {"nothing": False, "regression": slower, "change": changed}[fail_on]:
        raise typer.Exit(NO)


@app.command(
    epilog=examples(
        'opatlas query build/coverage "SELECT operator, avg(cycles) FROM records GROUP BY 1 ORDER BY 2 DESC LIMIT 10"',
        "opatlas query build/coverage \"SELECT case_id, reason FROM broken WHERE stage = 'lower'\" --json",
    )
)
def query(
    context: typer.Context,
    records: Annotated[Path, typer.Argument(metavar="RECORDS", help="A records file, or the folder of a run.")],
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A query of the tables `records` and `broken`.")],
    as_json: JsonOption = False,
) -> None:
    """Ask records anything, in DuckDB's SQL: a column for each field, `broken` has the cases that did not pass."""
    from reports import read_records
    from reports.query import Database
    from reports.store import require

    session: Session = context.obj
    with Database(require(read_records(records), records)) as database:
        rows = database.named_rows(sql)
    if as_json:
        session.show_json(rows)
    else:
        session.show(rows_table(rows))


def _leave(difference: Difference, fail_on: str) -> None:
    """Leave with status 1 if the difference is of the kind that `fail_on` names, or worse."""
    changed = difference.suite_changes or difference.other_changes or difference.removed
    fails = {"nothing": False, "regression": difference.is_regression, "change": difference.is_regression or changed}
    if fails[fail_on]:
        raise typer.Exit(NO)
