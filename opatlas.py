"""The `opatlas` command. Exit status: 0 fine, 1 the answer is no, 2 bad input, 3 a fault of opatlas itself."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from command import checks, rewrites, work
from reports.execution import check_text, located_text, rows_table, simulation_json, simulation_text

if TYPE_CHECKING:
    from reports import Difference

WIDTH_WITHOUT_TERMINAL = 160
NO, BAD_INPUT, OWN_FAULT = 1, 2, 3

app = typer.Typer(
    name="opatlas",
    help="Compile models for a simulated accelerator, and map what a compiler can really do.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@dataclass(slots=True)
class Session:
    """What all commands share: where they print, and whether a fault shows its traceback."""

    debug: bool = False
    out: Console = field(default_factory=lambda: _console(sys.stdout))
    err: Console = field(default_factory=lambda: _console(sys.stderr))

    def show(self, part: RenderableType) -> None:
        """Print a renderable to standard output."""
        self.out.print(part, highlight=False)

    def show_json(self, data: object) -> None:
        """Print plain data as JSON, the same bytes on a terminal and in a pipe."""
        sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False, default=str) + "\n")

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show a spinner on a terminal's standard error for as long as the work takes."""
        with self.err.status(what):
            yield


def _console(stream: Any) -> Console:  # noqa: ANN401 - any text stream
    width = None if stream.isatty() else WIDTH_WITHOUT_TERMINAL
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX file.")]
TargetOption = Annotated[str, typer.Option("--target", "-t", help="Name of a target, or path to its YAML file.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
BindOption = Annotated[list[str] | None, typer.Option("--bind", metavar="DIM=N", help="Size of a symbolic dimension.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of generated inputs.")]
PrecisionOption = Annotated[
    str | None,
    typer.Option("--precision", metavar="TYPE", help="Narrower float type that may replace one that the target lacks."),
]
DEFAULT_TARGET = "reference-npu"


def _examples(*lines: str) -> str:
    """Return an epilog of examples; the backspace keeps the help from filling them into one paragraph."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"opatlas {version('opatlas')}\n")
        raise typer.Exit


@app.callback()
def _common(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    context.obj.debug = debug


# --- the compiler


@app.command(
    epilog=_examples(
        "opatlas compile model.onnx",
        "opatlas compile model.onnx --emit ir -o model.mlir",
        "opatlas compile model.onnx --target edge-npu --bind batch=1 -o model.program",
    )
)
def compile(
    context: typer.Context,
    model: ModelArgument,
    target: TargetOption = DEFAULT_TARGET,
    emit: Annotated[Literal["ir", "onnx", "program"], typer.Option(help="What to write.")] = "program",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; standard output without it.")
    ] = None,
    dump: Annotated[
        Path | None, typer.Option("--dump", help="Folder for the graph after each pass that changed it.")
    ] = None,
    bind: BindOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Compile a model and write the graph, the graph as an ONNX model of the newest opset, or the program.

    Weights of a graph or a program stand in FILE.npz beside its text.
    """
    session: Session = context.obj
    with session.working(f"compiling {model.name}"):
        compiled = work.compile_model(model, target, precision=precision, dump_dir=dump)
        emitted = work.EMITTERS[emit](compiled, work.bindings(bind))
    if output is not None:
        emitted.write(output)
    elif isinstance(emitted.content, bytes):
        raise typer.BadParameter("a binary model needs a file: give -o FILE", param_hint="--emit onnx")
    else:
        sys.stdout.write(emitted.content)


@app.command(
    epilog=_examples(
        "opatlas simulate model.onnx",
        "opatlas simulate model.onnx --timing-only --bind batch=8",
        "opatlas simulate model.onnx --inputs x.npz --outputs y.npz --trace timeline.json",
    )
)
def simulate(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX file, or the text of a program.")],
    target: TargetOption = DEFAULT_TARGET,
    inputs: Annotated[Path | None, typer.Option("--inputs", metavar="F.npz", help="Inputs by name.")] = None,
    seed: SeedOption = 0,
    outputs: Annotated[
        Path | None, typer.Option("--outputs", metavar="F.npz", help="Where to write the outputs.")
    ] = None,
    bind: BindOption = None,
    trips: Annotated[
        list[str] | None, typer.Option("--trips", metavar="LOOP=N", help="Trips of a loop, for timing alone.")
    ] = None,
    branch: Annotated[
        list[str] | None, typer.Option("--branch", metavar="IF=B", help="Branch of an if, for timing alone.")
    ] = None,
    timing_only: Annotated[bool, typer.Option("--timing-only", help="Cycles without computing any value.")] = False,
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="F.json", help="Timeline for Perfetto or Chrome.")
    ] = None,
    locating: Annotated[
        bool, typer.Option("--locate", help="Compare each node's value with onnxruntime; name the first that differs.")
    ] = False,
    precision: PrecisionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a model on the simulated accelerator: cycles, traffic, energy, and what had to go to the host.

    With --locate the exit status is 1 if a value differs.
    """
    session: Session = context.obj
    if timing_only and (inputs or outputs or locating):
        raise typer.BadParameter("timing alone has no values: no inputs, no outputs", param_hint="--timing-only")
    sizes = work.bindings(bind)
    if locating:
        _locate(session, model, target, work.Draw(inputs, sizes, seed), precision, as_json=as_json)
        return
    with session.working(f"simulating {model.name}"):
        if work.is_program(model):
            used_target, names, result = work.simulate_program(model, inputs, timing_only=timing_only)
        else:
            compiled = work.compile_model(model, target, precision=precision)
            used_target, names = compiled.target.name, compiled.output_names
            if timing_only:
                taken = {name: bool(value) for name, value in work.bindings(branch).items()}
                result = compiled.estimate(bind=sizes, trips=work.bindings(trips), branches=taken)
            else:
                result = compiled.simulate(work.read_inputs(compiled, work.Draw(inputs, sizes, seed)))
    if outputs is not None:
        work.save_arrays(outputs, names, result.outputs or [])
    if trace is not None:
        work.write(trace, work.trace_text(result.report))
    data = simulation_json(model.name, used_target, names, result) | work.details(result.report)
    if as_json:
        session.show_json(data)
    else:
        session.show(simulation_text(data))


def _locate(
    session: Session, model: Path, target: str, draw: work.Draw, precision: str | None, *, as_json: bool
) -> None:
    with session.working(f"comparing each value of {model.name}"):
        data = checks.locate(model, target, draw, precision)
    if as_json:
        session.show_json(data)
    else:
        session.show(located_text(data))
    if data["first"] is not None:
        raise typer.Exit(NO)


@app.command(
    epilog=_examples(
        "opatlas check model.onnx", "opatlas check model.onnx --target edge-npu --precision float16 --bind batch=2"
    )
)
def check(
    context: typer.Context,
    model: ModelArgument,
    target: TargetOption = DEFAULT_TARGET,
    inputs: Annotated[Path | None, typer.Option("--inputs", metavar="F.npz", help="Inputs by name.")] = None,
    seed: SeedOption = 0,
    bind: BindOption = None,
    precision: PrecisionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a model's outputs with onnxruntime (its optimizer off), and say what runs where and why.

    Exit status 1 if an operator is unsupported or an output differs.
    """
    from compiler.errors import UnsupportedOperator

    session: Session = context.obj
    try:
        with session.working(f"checking {model.name}"):
            compiled = work.compile_model(model, target, precision=precision)
            draw = work.Draw(inputs, work.bindings(bind), seed)
            data = checks.check_model(compiled, model, work.read_inputs(compiled, draw))
    except UnsupportedOperator as error:
        session.err.print(Text(f"unsupported: {error}"))
        raise typer.Exit(NO) from error
    if as_json:
        session.show_json(data)
    else:
        session.show(check_text(data))
    if not all(output["agrees"] for output in data["outputs"]):
        raise typer.Exit(NO)


@app.command(
    epilog=_examples(
        "opatlas ops",
        "opatlas ops softmax",
        "opatlas ops --reference",
        "opatlas ops --framework onnx --coverage build/coverage",
    )
)
def ops(
    context: typer.Context,
    operator: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One operator of the IR, in full.")] = None,
    framework: Annotated[Literal["ir", "onnx"], typer.Option(help="Operators of the IR, or of a framework.")] = "ir",
    reference: Annotated[bool, typer.Option("--reference", help="All operators of the IR, as Markdown.")] = False,
    coverage: Annotated[
        Path | None, typer.Option(metavar="RECORDS", help="Records of a run: adds its outcomes.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the operators of the IR, or those of a framework with manifest, converter and coverage."""
    session: Session = context.obj
    if operator is not None or reference:
        sys.stdout.write(work.operator_reference(operator))
        return
    rows = work.ir_operators() if framework == "ir" else work.framework_operators(framework, coverage)
    if as_json:
        session.show_json(rows)
    else:
        session.show(rows_table(rows))


@app.command(
    epilog=_examples(
        "opatlas targets", "opatlas targets --explain edge-npu", "opatlas targets --explain systolic-128x128-ws"
    )
)
def targets(
    context: typer.Context,
    explain: Annotated[str | None, typer.Option(metavar="TARGET", help="Every figure of one, with its source.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the accelerators, or explain one."""
    from compiler import targets as known

    session: Session = context.obj
    if explain is not None:
        found = known.load_target(explain)
        if as_json:
            session.show_json(json.loads(found.model_dump_json()))
        else:
            sys.stdout.write(known.explain(found))
        return
    rows = [work.target_row(name) for name in known.target_names()]
    if as_json:
        session.show_json(rows)
    else:
        session.show(rows_table(rows))


@app.command(
    epilog=_examples(
        "opatlas explain",
        "opatlas explain model.onnx --rule add_of_nothing",
        "opatlas explain model.onnx --rule batch_norm_into_conv --optimized",
    )
)
def explain(
    context: typer.Context,
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="An ONNX file; without it, the rules.")
    ] = None,
    rule: Annotated[str | None, typer.Option(metavar="NAME", help="Rule to explain.")] = None,
    optimized: Annotated[bool, typer.Option("--optimized", help="Ask of the graph after all passes.")] = False,
    target: TargetOption = DEFAULT_TARGET,
    bind: BindOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the rules of the passes, or say at each operation of a model why a rule fires there or not."""
    session: Session = context.obj
    if model is None:
        rows = rewrites.rule_rows()
        session.show_json(rows) if as_json else session.show(rows_table(rows))
        return
    if rule is None:
        raise typer.BadParameter("a model needs a rule to ask about", param_hint="--rule")
    compiled = work.compile_model(model, target)
    lines = rewrites.explain(compiled, rule, work.bindings(bind), optimized=optimized)
    if as_json:
        session.show_json(lines)
    else:
        sys.stdout.write("".join(f"{line}\n" for line in lines) or "no operation that the rule's root takes\n")


@app.command(
    epilog=_examples("opatlas bisect model.onnx", "opatlas bisect model.onnx --bind batch=2 --inputs failing.npz")
)
def bisect(
    context: typer.Context,
    model: ModelArgument,
    target: TargetOption = DEFAULT_TARGET,
    inputs: Annotated[Path | None, typer.Option("--inputs", metavar="F.npz", help="Inputs by name.")] = None,
    seed: SeedOption = 0,
    bind: BindOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the first rewrite after which a model no longer agrees with onnxruntime. Exit status 1 if there is one."""
    session: Session = context.obj
    with session.working(f"bisecting {model.name}"):
        compiled = work.compile_model(model, target)
        feeds = work.read_inputs(compiled, work.Draw(inputs, work.bindings(bind), seed))
        data = rewrites.bisect(compiled, checks.load_model(model), feeds)
    if as_json:
        session.show_json(data)
    elif data["broken_at"] is None:
        session.show(Text("every rewrite keeps the result: what differs comes after them"))
    else:
        session.show(Text(f"rewrite {data['broken_at']} breaks the result: {data['rewrite']}"))
    if data["broken_at"] is not None:
        raise typer.Exit(NO)


# --- records


@app.command(
    epilog=_examples(
        "opatlas report build/coverage",
        "opatlas report build/coverage/records.jsonl -o /tmp/report",
        "opatlas report build/coverage --against older/records.jsonl --fail-on regression",
    )
)
def report(
    context: typer.Context,
    records: Annotated[Path, typer.Argument(metavar="RECORDS", help="A records file, or the folder of a run.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the reports.")] = Path("build/coverage"),
    against: Annotated[Path | None, typer.Option(metavar="OLDER", help="An older run to compare with.")] = None,
    fail_on: Annotated[
        Literal["nothing", "regression", "change"], typer.Option(help="What makes the exit status 1.")
    ] = "nothing",
    as_json: JsonOption = False,
) -> None:
    """Write the HTML, JSON, CSV and JUnit reports of a run and print its summary."""
    from reports import diff as compare_runs
    from reports import write_reports
    from reports.terminal import difference_text, summary_text

    session: Session = context.obj
    with session.working("writing reports"):
        summary = write_reports(records, output)
        difference = None if against is None else compare_runs(against, records)
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


@app.command(
    epilog=_examples(
        "opatlas diff older/records.jsonl build/coverage/records.jsonl",
        "opatlas diff older newer --fail-on change --json",
    )
)
def diff(
    context: typer.Context,
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Records of the older run.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Records of the newer run.")],
    fail_on: Annotated[
        Literal["nothing", "regression", "change"], typer.Option(help="What makes the exit status 1.")
    ] = "regression",
    as_json: JsonOption = False,
) -> None:
    """Compare two runs: regressions, fixes, cycles, and what only the suite changed."""
    from reports import diff as compare_runs
    from reports.terminal import difference_text

    session: Session = context.obj
    difference = compare_runs(old, new)
    if as_json:
        session.show_json(difference.model_dump(mode="json"))
    else:
        session.show(difference_text(difference))
    _leave(difference, fail_on)


@app.command(
    epilog=_examples(
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

    session: Session = context.obj
    with Database(read_records(records)) as database:
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


# --- start


def _refusals() -> tuple[type[Exception], ...]:
    """Return the classes of error that are the user's to mend: one line and exit status 2, never a traceback."""
    from compiler.errors import OpatlasError
    from opsets.errors import ManifestError
    from reports.errors import ReportError

    return (OpatlasError, ManifestError, ReportError, OSError, work.BadOption, checks.NoReference)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave with its exit status."""
    session = Session()
    try:
        app(args=None if arguments is None else list(arguments), obj=session, prog_name="opatlas")
    except _refusals() as error:
        _complain(session, str(error), error)
        sys.exit(BAD_INPUT)
    except Exception as error:  # noqa: BLE001 - the last resort: a fault of ours is a line as well
        _complain(session, f"internal fault, {type(error).__name__}: {error} (--debug shows where)", error)
        sys.exit(OWN_FAULT)


def _complain(session: Session, message: str, error: Exception) -> None:
    if session.debug:
        traceback.print_exception(error)
    sys.stderr.write("opatlas: error: " + " ".join(message.split()) + "\n")


if __name__ == "__main__":
    main()
