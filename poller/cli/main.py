"""The way in: finds the command, turns every failure into the error form and an exit code.

Exit codes: 0 good, 1 the answer is bad, 2 usage or configuration, 3 not found, 4 not allowed,
5 broker or database unreachable, 124 `--wait` ran out, 130 interrupted, 141 nobody reads our output any more.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Container, Sequence
from typing import Annotated, Literal

import typer
from typer.exceptions import Abort, TyperException
from typer.main import get_command

import poller
from poller import errors
from poller.cli import plugin_runner
from poller.cli.command_tree import Branch, LazyGroup
from poller.cli.output import render
from poller.domain.inventory.did_you_mean import nearest

INTERRUPTED = 130
#: What a shell reports of a program that SIGPIPE ended; we say it without dying, since servers must not.
READER_GONE = 141

#: Typer's words for it.
_NO_CHOICE = re.compile(r"'([^']*)' is not one of (.*)", re.DOTALL)
_NO_COMMAND = re.compile(r"No such command '([^']*)'")
#: What other programs call it; the first that the command has is meant.
_SYNONYMS = {
    **dict.fromkeys(("remove", "delete", "del", "drop"), ("rm", "drop", "clear")),
    **dict.fromkeys(("show", "get", "ls", "info"), ("show", "list")),
    **dict.fromkeys(("create", "new", "insert"), ("add", "new")),
    **dict.fromkeys(("set", "update", "change", "modify", "rename"), ("edit",)),
    **dict.fromkeys(("start", "run", "serve"), ("up",)),
}

_INVENTORY, _RUNNING, _LOOKING, _CARE = "Inventory", "Running", "Looking", "Care"


class Root(LazyGroup):
    branches = (
        Branch("up", "poller.cli.commands.up:command", "Run everything on this machine.", _RUNNING),
        Branch(
            "worker", "poller.cli.commands.worker:command", "Run workers, one per core.", _RUNNING
        ),
        Branch("beat", "poller.cli.commands.beat:command", "Run the scheduler.", _RUNNING),
        Branch("web", "poller.cli.commands.web:command", "Serve the page.", _RUNNING),
        Branch(
            name="traps",
            place="poller.cli.commands.traps:command",
            help="Hear what devices announce, and poll them at once.",
            panel=_RUNNING,
        ),
        Branch(
            "flower", "poller.cli.commands.flower:command", "Run Celery's own monitor.", _RUNNING
        ),
        Branch("sim", "poller.cli.commands.sim:command", "Run simulated devices.", _RUNNING),
        Branch("demo", "poller.cli.commands.demo:app", "Manage the simulated fleet.", _RUNNING),
        Branch(
            "device",
            "poller.cli.commands.device:app",
            "Add, list, edit, import and export devices.",
            _INVENTORY,
        ),
        Branch(
            "target",
            "poller.cli.commands.target:app",
            "What is polled on a device, and how often.",
            _INVENTORY,
        ),
        Branch(
            "credential",
            "poller.cli.commands.credential:app",
            "Store the secrets devices ask for.",
            _INVENTORY,
        ),
        Branch(
            "site",
            "poller.cli.commands.site:app",
            "Where devices are, and who may poll them.",
            _INVENTORY,
        ),
        Branch(
            "status",
            "poller.cli.commands.status:command",
            "Is polling on time, and what broke?",
            _LOOKING,
        ),
        Branch(
            "workers",
            "poller.cli.commands.workers:command",
            "Who polls, what each carries, and who was lost.",
            _LOOKING,
        ),
        Branch(
            "readings",
            "poller.cli.commands.readings:command",
            "The latest values of a device.",
            _LOOKING,
        ),
        Branch("runs", "poller.cli.commands.runs:command", "What became of every poll.", _LOOKING),
        Branch(
            "events",
            "poller.cli.commands.events:command",
            "What changed, and what changes now.",
            _LOOKING,
        ),
        Branch("poll", "poller.cli.commands.poll:command", "Poll targets now.", _LOOKING),
        Branch(
            "collect",
            "poller.cli.commands.collect:command",
            "Try a collector on an address.",
            _LOOKING,
        ),
        Branch(
            "snmp",
            "poller.cli.commands.snmp:app",
            "Ask an SNMP agent: walk, get, identify.",
            _LOOKING,
        ),
        Branch(
            "discover",
            "poller.cli.commands.discover:command",
            "What is at an address, and which targets suit it?",
            _LOOKING,
        ),
        Branch(
            "collectors",
            "poller.cli.commands.collectors:app",
            "What is installed, its options, and its crashes.",
            _LOOKING,
        ),
        Branch("sinks", "poller.cli.commands.sinks:command", "Where readings can go.", _LOOKING),
        Branch(
            "breaker",
            "poller.cli.commands.breaker:app",
            "Targets that are left alone, and why.",
            _LOOKING,
        ),
        Branch(
            "deadletter",
            "poller.cli.commands.deadletter:app",
            "Targets that need a person.",
            _LOOKING,
        ),
        Branch(
            "board", "poller.cli.commands.board:app", "The schedule as it is in Redis.", _LOOKING
        ),
        Branch(
            "explain",
            "poller.cli.commands.explain:command",
            "What a code means, and what to do.",
            _LOOKING,
        ),
        Branch("plugin", "poller.cli.commands.plugin:app", "Write a collector of your own.", _CARE),
        Branch("db", "poller.cli.commands.db:app", "The database's schema.", _CARE),
        Branch(
            "settings",
            "poller.cli.commands.settings:command",
            "Every setting and its origin.",
            _CARE,
        ),
        Branch("version", "poller.cli.commands.version:command", "Version of this program.", _CARE),
    )


app = typer.Typer(
    cls=Root,
    name="poller",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A distributed polling platform for network fleets.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        render.echo(f"poller {poller.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show tracebacks of errors.")] = False,
    color: Annotated[
        Literal["auto", "always", "never"], typer.Option(help="Colours in output.")
    ] = "auto",
) -> None:
    render.verbose = verbose
    if color != "auto":
        os.environ["NO_COLOR" if color == "never" else "FORCE_COLOR"] = "1"


def main() -> None:
    plugin_runner.leave(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; whatever happens is said on stderr."""
    render.begin(as_json="--json" in arguments)
    try:
        return _run(arguments)
    except BrokenPipeError:
        _forget_readers()
        return READER_GONE


def _run(arguments: Sequence[str]) -> int:
    try:
        status = get_command(app).main(list(arguments), prog_name="poller", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, Abort):
        return INTERRUPTED
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            raise stop.__context__ from None  # Typer and Rich turn one into exit code 1
        return stop.code if isinstance(stop.code, int) else 1
    except Exception as error:  # noqa: BLE001  the last line: a person gets a sentence, not a traceback
        return _report(error)


def _report(error: Exception) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        return 2  # the help has been printed
    if render.verbose:
        traceback.print_exception(error)
    if isinstance(error, errors.PollerError):
        render.error(error)
        return error.exit_code
    if isinstance(error, TyperException):
        render.error(_usage(error))
        return 2
    render.error(_bug(error))
    return 1


def _usage(error: TyperException) -> errors.ConfigError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "poller"
    message = error.format_message().rstrip(".")
    near = _meant(message)
    if called := _called(message, getattr(context.command, "commands", ()) if context else ()):
        message, near = (
            message.partition(". ")[0],
            called,
        )  # Typer's guess goes by letters: `start` is like `status`
    return errors.ConfigError(
        message, hint=f"did you mean {near}? (or: {path} --help)" if near else f"{path} --help"
    )


def _meant(message: str) -> str | None:
    """Of a value that is none of the choices, the choice that is most like it."""
    found = _NO_CHOICE.search(message)
    if not found:
        return None
    word, choices = found[1], re.findall(r"'([^']*)'", found[2])
    return nearest(word, choices) or next(
        (each for each in choices if word and each.startswith(word)), None
    )


def _called(message: str, known: Container[str]) -> str | None:
    """The command that goes by this name elsewhere."""
    found = _NO_COMMAND.search(message)
    return (
        next((name for name in _SYNONYMS.get(found[1], ()) if name in known), None)
        if found
        else None
    )


def _bug(error: Exception) -> errors.PollerError:
    text = " ".join(str(error).split())
    return errors.PollerError(
        f"unexpected {type(error).__name__}: {text}",
        hint="this is a bug in poller; the same with poller --verbose ... shows where",
    )


def _forget_readers() -> None:
    """Whoever read our output is gone: let the interpreter flush into nothing at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
