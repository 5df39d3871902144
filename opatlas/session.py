"""What all commands share: output, exit status, options, and examples in their help."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType

WIDTH_WITHOUT_TERMINAL = 160
NO, BAD_INPUT, OWN_FAULT = 1, 2, 3


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


ModelArgument = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="An ONNX file, a prototxt, a SavedModel's folder, a .keras or frozen .pb file, a .pt2 file.",
    ),
]
WeightsOption = Annotated[
    Path | None,
    typer.Option("--weights", metavar="F.caffemodel", help="Weights of a prototxt; else of its name beside it."),
]
TargetOption = Annotated[str, typer.Option("--target", "-t", help="Name of a target, or path to its YAML file.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
BindOption = Annotated[
    list[str] | None,
    typer.Option("--bind", metavar="DIM=N", help="Size of a symbolic dimension; 1 where values are drawn without it."),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of generated inputs.")]
PrecisionOption = Annotated[
    str | None,
    typer.Option("--precision", metavar="TYPE", help="Narrower float type that may replace one that the target lacks."),
]
DEFAULT_TARGET = "reference-npu"


def examples(*lines: str) -> str:
    """Return an epilog of examples; the backspace keeps the help from filling them into one paragraph."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
