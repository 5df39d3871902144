"""The `opatlas` command. Exit status: 0 fine, 1 the answer is no, 2 bad input, 3 a fault of opatlas itself."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from opatlas import models, natives, runs, studies, work
from opatlas.session import BAD_INPUT, OWN_FAULT, Session

_LONGEST_LINE = 2000

app = typer.Typer(
    name="opatlas",
    help="Compile models for a simulated accelerator, and map what a compiler can really do.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(models.app)
app.add_typer(studies.app)
app.add_typer(runs.app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("opatlas")
        except PackageNotFoundError:
            found = "from source, not installed"
        sys.stdout.write(f"opatlas {found}\n")
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


def _refusals() -> tuple[type[Exception], ...]:
    """Return the classes of error that are the user's to mend: one line and exit status 2, never a traceback."""
    from compiler.errors import OpatlasError
    from opsets.errors import ManifestError
    from reports.errors import ReportError

    return (OpatlasError, ManifestError, ReportError, OSError, work.BadOption, natives.NoReference)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave with its exit status."""
    session = Session()
    try:
        app(args=None if arguments is None else list(arguments), obj=session, prog_name="opatlas")
    except _refusals() as error:
        _complain(session, _told(error), error)
        sys.exit(BAD_INPUT)
    except MemoryError as error:
        _complain(session, f"this needs more memory than there is here: {error}", error)
        sys.exit(BAD_INPUT)
    except Exception as error:  # noqa: BLE001 - the last resort: a fault of ours is a line as well
        _complain(session, f"internal fault, {type(error).__name__}: {error} (--debug shows where)", error)
        sys.exit(OWN_FAULT)


def _told(error: Exception) -> str:
    """Return what an error says, without the numbers of the operating system."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _complain(session: Session, message: str, error: Exception) -> None:
    if session.debug:
        traceback.print_exception(error)
    line = " ".join(message.split())
    # Names come from files: what would steer the terminal is shown as an escape.
    shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
    cut = shown if len(shown) <= _LONGEST_LINE else f"{shown[:_LONGEST_LINE]}... ({len(shown)} letters)"
    sys.stderr.write(f"opatlas: error: {cut}\n")
