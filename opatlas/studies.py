"""Commands that time a model many times."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from opatlas import sweep as study
from opatlas import work
from opatlas.session import (
    DEFAULT_TARGET,
    BindOption,
    JsonOption,
    ModelArgument,
    Session,
    TargetOption,
    WeightsOption,
    examples,
)
from opsets.decoders import decoder_names, load_decoder
from reports.decoder import decoder_text
from reports.sweep import OBJECTIVES, sweep_text, write_sweep

app = typer.Typer()


@app.command(
    epilog=examples(
        "opatlas llm llama-2-7b --target datacenter-npu",
        "opatlas llm llama-3-8b --prompt 512 --generate 256 --batch 4 --target datacenter-npu --json",
        "opatlas llm my-decoder.yaml --dtype float16    # layers, width, heads, groups, head, inner, vocabulary",
    )
)
def llm(
    context: typer.Context,
    decoder: Annotated[
        str, typer.Argument(metavar="DECODER", help=f"One of {', '.join(decoder_names())}, or a YAML file.")
    ],
    target: TargetOption = DEFAULT_TARGET,
    prompt: Annotated[int, typer.Option(metavar="N", help="Tokens of the prompt.")] = 2048,
    generate: Annotated[int, typer.Option(metavar="N", help="Tokens generated after it.")] = 128,
    batch: Annotated[int, typer.Option(metavar="N", help="Sequences at once.")] = 1,
    dtype: Annotated[str, typer.Option(metavar="TYPE", help="Float type of weights and values.")] = "bfloat16",
    as_json: JsonOption = False,
) -> None:
    """Time a decoder at its real size: first token, tokens a second, energy, cache, and what bounds it.

    Nothing is computed and no weight is made: blocks are compiled once each and counted.
    """
    from compiler.targets import load_target
    from opatlas.llm import Load
    from opatlas.llm import study as time_decoder

    session: Session = context.obj
    sizes, load, chosen = load_decoder(decoder), Load(prompt, generate, batch, dtype), load_target(target)
    with session.working(f"timing {decoder} on {chosen.name}"):
        data = time_decoder(sizes, load, chosen, decoder)
    if as_json:
        session.show_json(data)
    else:
        session.show(decoder_text(data))


@app.command(
    epilog=examples(
        "opatlas sweep model.onnx --over sram=1MB,2MB,4MB,rows=16,32,64,columns=16,32,64",
        "opatlas sweep model.onnx --over bandwidth=12.8GB/s,51.2GB/s --over dtype=float32,float16 -o build/sweep",
        "opatlas sweep model.onnx --over target=edge-npu,datacenter-npu,dtype=bfloat16 --objectives seconds,energy_pj",
        "opatlas sweep model.onnx --over rows=8,16,32 --scheduler tcp://host:8786   # dask scheduler, dask worker",
    )
)
def sweep(
    context: typer.Context,
    model: ModelArgument,
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            metavar="AXIS=V,V",
            help="Axes and values: sram, bandwidth, latency, rows, columns, dataflow, lanes, frequency, dtype, target, "
            "or any figure of a target by its key.",
        ),
    ],
    target: TargetOption = DEFAULT_TARGET,
    objectives: Annotated[
        str, typer.Option(metavar="A,B", help=f"What the Pareto front is of: {', '.join(OBJECTIVES)}.")
    ] = "seconds,energy_pj",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the page, CSV and JSON, and for the points done so far.")
    ] = Path("build/sweep"),
    bind: BindOption = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Processes; one a core without it.")] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address of a Dask scheduler whose workers do the points.")
    ] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Forget the points that the folder holds.")] = False,
    weights: WeightsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Time a model on every combination of a target's figures, and draw the Pareto front.

    Points that are done are kept: the same command goes on where it was interrupted.
    """
    session: Session = context.obj
    axes = study.axes_of(over)
    wanted = tuple(name.strip() for name in objectives.split(","))
    for name in wanted:
        if name not in OBJECTIVES:
            raise work.BadOption(f"--objectives: found {name!r}, expected some of {', '.join(OBJECTIVES)}")
    points = study.grid(axes)
    with session.working(f"optimizing {model.name}"):
        compiled = work.compile_model(work.with_weights(model, weights), target)
        prepared = study.Study.of(compiled, work.bindings(bind), compiled.target, points)
    path = output / study.POINTS
    if restart:
        path.unlink(missing_ok=True)
    records = []
    with _progress(session) as progress:
        task = progress.add_task(model.name, total=len(points))
        for record in study.run_points(prepared, points, path, jobs=jobs, scheduler=scheduler):
            records.append(record)
            progress.advance(task)
    data = study.summary(model.name, prepared, axes, records, wanted)
    page = write_sweep(data, output)
    session.err.print(Text(f"written: {page}"))
    session.show_json(data) if as_json else session.show(sweep_text(data))


def _progress(session: Session) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=session.err, transient=True)
