"""Commands about models, operators and targets."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from opatlas import checks, rewrites, work
from opatlas.performance import performance
from opatlas.session import (
    DEFAULT_TARGET,
    NO,
    BindOption,
    JsonOption,
    ModelArgument,
    PrecisionOption,
    SeedOption,
    Session,
    TargetOption,
    WeightsOption,
    examples,
)
from reports.execution import check_text, located_text, rows_table, simulation_json, simulation_text
from reports.measured import compare_measured, measured_text, read_measured

if TYPE_CHECKING:
    from compiler.api import CompiledModel

app = typer.Typer()


@app.command(
    epilog=examples(
        "opatlas compile model.onnx",
        "opatlas compile model.onnx --emit ir -o model.mlir",
        "opatlas compile net.prototxt --emit onnx --opset 13 -o net.onnx",
        "opatlas compile model.onnx --target edge-npu --bind batch=1 -o model.program",
    )
)
def compile(
    context: typer.Context,
    model: ModelArgument,
    target: TargetOption = DEFAULT_TARGET,
    emit: Annotated[Literal["ir", "onnx", "program"], typer.Option(help="What to write.")] = "program",
    opset: Annotated[
        int | None,
        typer.Option("--opset", metavar="N", help="Operator set of an ONNX model, 13 or newer."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; standard output without it.")
    ] = None,
    dump: Annotated[
        Path | None, typer.Option("--dump", help="Folder for the graph after each pass that changed it.")
    ] = None,
    bind: BindOption = None,
    precision: PrecisionOption = None,
    weights: WeightsOption = None,
) -> None:
    """Compile a model and write the graph, the graph as an ONNX model, or the program.

    The graph is as it was imported, with its symbolic sizes; --dump shows what the passes make of it. What an older
    --opset has no operator for is written by others, or refused with the first opset that can say it. A program is for
    one set of sizes, 1 where --bind gives none.

    Weights of a graph or a program stand in FILE.npz beside its text.
    """
    session: Session = context.obj
    if opset is not None and emit != "onnx":
        raise typer.BadParameter("only an ONNX model has one: add --emit onnx", param_hint="--opset")
    with session.working(f"compiling {model.name}"):
        compiled = work.compile_model(work.with_weights(model, weights), target, precision=precision, dump_dir=dump)
        sizes = work.bindings(bind)
        emitted = work.EMITTERS[emit](compiled, work.Wanted(sizes, opset))
        if emit == "program":
            _say_assumed(session, compiled, sizes, None)
        if dump is not None and emit != "program":
            work.EMITTERS["program"](compiled, work.Wanted(sizes))  # passes run, and dump, only on the way to a program
    if output is not None:
        emitted.write(output)
    elif isinstance(emitted.content, bytes):
        raise typer.BadParameter("a binary model needs a file: give -o FILE", param_hint="--emit onnx")
    else:
        sys.stdout.write(emitted.content)


@app.command(
    epilog=examples(
        "opatlas simulate model.onnx",
        "opatlas simulate model.onnx --timing-only --bind batch=8",
        "opatlas simulate net.prototxt --weights net.caffemodel",
        "opatlas simulate model.onnx --inputs x.npz --outputs y.npz --trace timeline.json",
        "opatlas simulate model.onnx --timing-only --report build/resnet",
        "opatlas simulate model.onnx --timing-only --measured times.csv   # operator,microseconds",
    )
)
def simulate(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model file, as `compile` takes it, or the text of a program.")
    ],
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
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Folder for a page with tables and plots, as CSV and JSON too."),
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option("--measured", metavar="F.csv", help="Operators with the microseconds they took on a real device."),
    ] = None,
    locating: Annotated[
        bool, typer.Option("--locate", help="Compare each node's value with onnxruntime; name the first that differs.")
    ] = False,
    precision: PrecisionOption = None,
    weights: WeightsOption = None,
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
        _locate(session, model, target, work.Draw(inputs, sizes, seed), precision, weights, as_json=as_json)
        return
    with session.working(f"simulating {model.name}"):
        if work.is_program(model):
            used_target, names, result = work.simulate_program(model, inputs, seed, timing_only=timing_only)
        else:
            compiled = work.compile_model(work.with_weights(model, weights), target, precision=precision)
            used_target, names = compiled.target.name, compiled.output_names
            if timing_only:
                taken = {name: bool(value) for name, value in work.bindings(branch).items()}
                result = work.estimate(compiled, sizes, work.bindings(trips), taken)
            else:
                result = compiled.simulate(work.read_inputs(compiled, work.Draw(inputs, sizes, seed)))
                _say_assumed(session, compiled, sizes, inputs)
    if outputs is not None:
        work.save_arrays(outputs, names, result.outputs or [])
    if trace is not None:
        work.write(trace, work.trace_text(result.report))
    if report is not None:
        with session.working(f"writing {report}"):
            page = work.write_report(model.name, result, report)
        session.err.print(Text(f"written: {page}"))
    if measured is not None:
        compared = compare_measured(performance(model.name, result), read_measured(measured))
        session.show_json(compared) if as_json else session.show(measured_text(compared))
        return
    data = simulation_json(model.name, used_target, names, result) | work.details(result.report)
    if as_json:
        session.show_json(data)
    else:
        session.show(simulation_text(data))


def _say_assumed(session: Session, compiled: CompiledModel, sizes: Mapping[str, int], inputs: Path | None) -> None:
    """Say on standard error which sizes nobody gave: figures for a batch of 1 are easily taken for another's."""
    assumed = work.unbound(compiled, sizes)
    if assumed and inputs is None:
        session.err.print(Text(f"sizes not given by --bind are 1: {', '.join(assumed)}"))


def _locate(
    session: Session,
    model: Path,
    target: str,
    draw: work.Draw,
    precision: str | None,
    weights: Path | None,
    *,
    as_json: bool,
) -> None:
    with session.working(f"comparing each value of {model.name}"):
        work.with_weights(model, weights)
        data = checks.locate(model, target, draw, precision, weights)
    if as_json:
        session.show_json(data)
    else:
        session.show(located_text(data))
    if data["first"] is not None:
        raise typer.Exit(NO)


@app.command(
    epilog=examples(
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
    weights: WeightsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a model's outputs with onnxruntime (its optimizer off), and say what runs where and why.

    A model of torch, TensorFlow or Caffe is compared with eager torch, TensorFlow or OpenCV, and with onnxruntime on
    its graph written as ONNX: where only the first differs, the fault is in the import, or in the framework.

    Exit status 1 if an operator is unsupported or an output differs.
    """
    from compiler.errors import UnsupportedOperator

    session: Session = context.obj
    try:
        with session.working(f"checking {model.name}"):
            compiled = work.compile_model(work.with_weights(model, weights), target, precision=precision)
            draw = work.Draw(inputs, work.bindings(bind), seed)
            data = checks.check_model(compiled, model, work.read_inputs(compiled, draw), weights)
            _say_assumed(session, compiled, draw.sizes, inputs)
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
    epilog=examples(
        "opatlas ops",
        "opatlas ops softmax",
        "opatlas ops --reference",
        "opatlas ops --framework onnx --coverage build/coverage",
        "opatlas ops --framework onnx --coverage build/coverage --missing",
    )
)
def ops(
    context: typer.Context,
    operator: Annotated[str | None, typer.Argument(metavar="NAME", help="One operator of the IR, in full.")] = None,
    framework: Annotated[
        Literal["ir", "onnx", "torch", "tensorflow", "caffe"],
        typer.Option(help="Operators of the IR, or of a framework."),
    ] = "ir",
    reference: Annotated[bool, typer.Option("--reference", help="All operators of the IR, as Markdown.")] = False,
    coverage: Annotated[
        Path | None,
        typer.Option(metavar="RECORDS", help="Records of a run: how much of the framework's schema it covers."),
    ] = None,
    missing: Annotated[bool, typer.Option("--missing", help="With --coverage: what is missing, and why.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the operators of the IR, or those of a framework with manifest, converter and coverage."""
    session: Session = context.obj
    if operator is not None or reference:
        sys.stdout.write(work.operator_reference(operator))
        return
    if coverage is not None:
        _coverage(session, framework, coverage, with_missing=missing, as_json=as_json)
        return
    rows = work.ir_operators() if framework == "ir" else work.framework_operators(framework)
    if as_json:
        session.show_json(rows)
    else:
        session.show(rows_table(rows))


def _coverage(session: Session, framework: str, records: Path, *, with_missing: bool, as_json: bool) -> None:
    from opatlas.coverage import coverage, coverage_text

    if framework == "ir":
        raise typer.BadParameter("records speak of a framework: give --framework onnx", param_hint="--coverage")
    with session.working("counting what the run covers"):
        figures = coverage(records, framework)
    if as_json:
        session.show_json([figure.plain(with_missing=with_missing) for figure in figures])
    else:
        session.show(coverage_text(figures, with_missing=with_missing))


@app.command(
    epilog=examples(
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
    epilog=examples(
        "opatlas explain",
        "opatlas explain model.onnx --rule identity_element",
        "opatlas explain model.onnx --rule batch_norm_into_conv --optimized",
    )
)
def explain(
    context: typer.Context,
    model: Annotated[Path | None, typer.Argument(metavar="MODEL", help="An ONNX file; without it, the rules.")] = None,
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
        nothing = f"rule '{rule}' starts at operations that this graph has none of\n"
        sys.stdout.write("".join(f"{line}\n" for line in lines) or nothing)


@app.command(
    epilog=examples("opatlas bisect model.onnx", "opatlas bisect model.onnx --bind batch=2 --inputs failing.npz")
)
def bisect(
    context: typer.Context,
    model: ModelArgument,
    target: TargetOption = DEFAULT_TARGET,
    inputs: Annotated[Path | None, typer.Option("--inputs", metavar="F.npz", help="Inputs by name.")] = None,
    seed: SeedOption = 0,
    bind: BindOption = None,
    weights: WeightsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the first rewrite after which a model no longer agrees with onnxruntime. Exit status 1 if there is one."""
    session: Session = context.obj
    with session.working(f"bisecting {model.name}"):
        compiled = work.compile_model(work.with_weights(model, weights), target)
        feeds = work.read_inputs(compiled, work.Draw(inputs, work.bindings(bind), seed))
        data = rewrites.bisect(compiled, checks.load_model(model, weights, feeds), feeds)
    if as_json:
        session.show_json(data)
    elif data["broken_at"] is None:
        session.show(Text("no rewrite breaks the result: where `check` differs, the fault is in what comes after them"))
    else:
        session.show(Text(f"rewrite {data['broken_at']} breaks the result: {data['rewrite']}"))
    if data["broken_at"] is not None:
        raise typer.Exit(NO)
