"""The entry point: finds the command, and turns failures into printed errors and exit codes.

Exit codes: 0 good, 1 the result is bad, 2 usage or configuration, 3 not found, 4 not allowed,
5 broker or database unreachable, 124 `--wait` ran out, 130 interrupted, 141 output closed.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Container, Iterator, Sequence
from typing import Annotated, Literal

import typer
from typer.exceptions import Abort, TyperException
from typer.main import get_command

import poller
from poller import errors
from poller.cli.command_tree import Branch, LazyGroup
from poller.cli.direct import plugin_runner
from poller.cli.output import render
from poller.domain.inventory.did_you_mean import nearest

INTERRUPTED = 130
#: The code a shell reports after SIGPIPE. The signal itself stays ignored: it would end servers.
READER_GONE = 141

#: Typer's error texts.
_NO_CHOICE = re.compile(r"'([^']*)' is not one of (.*)", re.DOTALL)
_NO_COMMAND = re.compile(r"No such command '([^']*)'")

#: The commands that stand for a word of other programs; the first that the group has is suggested.
_REMOVE = ("rm", "drop", "clear")
_SHOW = ("show", "list")
_ADD = ("add", "new")
_SYNONYMS = {
    "remove": _REMOVE,
    "delete": _REMOVE,
    "del": _REMOVE,
    "drop": _REMOVE,
    "show": _SHOW,
    "get": _SHOW,
    "ls": _SHOW,
    "info": _SHOW,
    "create": _ADD,
    "new": _ADD,
    "insert": _ADD,
    "set": ("edit",),
    "update": ("edit",),
    "change": ("edit",),
    "modify": ("edit",),
    "rename": ("edit",),
    "start": ("up",),
    "run": ("up",),
    "serve": ("up",),
}

#: (panel, command, attribute of its module, line in the help). The module has the command's name,
#: unless it is named before the attribute.
_BRANCHES = (
    ("Running", "up", "command", "Run everything on this machine."),
    ("Running", "worker", "command", "Run workers, one per core."),
    ("Running", "beat", "command", "Run the scheduler."),
    ("Running", "web", "command", "Serve the page."),
    ("Running", "traps", "command", "Receive SNMP notifications and poll their devices."),
    ("Running", "flower", "command", "Run Celery's own monitor."),
    ("Running", "sim", "command", "Run simulated devices."),
    ("Running", "demo", "app", "Manage the simulated fleet."),
    ("Inventory", "device", "app", "Add, list, edit, import and export devices."),
    ("Inventory", "target", "app", "What is polled on a device, and how often."),
    ("Inventory", "credential", "app", "Store the secrets that devices ask for."),
    ("Inventory", "site", "app", "Where devices are, and which workers may poll them."),
    ("Inventory", "filter", "app", "Saved filters of the list of devices."),
    ("Inventory", "migrate", "moving_over:app", "Move over from snmp_exporter."),
    ("Inspection", "status", "command", "Is polling on time, and what failed?"),
    ("Inspection", "top", "command", "The fleet live, with what fails and why."),
    ("Inspection", "why", "command", "Why a target is polled, late, failing or left alone."),
    ("Inspection", "alerts", "app", "What is wrong now: list, acknowledge, silence."),
    ("Inspection", "maintenance", "maintenances:app", "Until when nobody is told of what matches."),
    ("Inspection", "workers", "app", "Workers: their load, those that were lost, and drains."),
    ("Inspection", "readings", "command", "The latest values of a device."),
    ("Inspection", "report", "app", "Figures of a month: the traffic of interfaces."),
    ("Inspection", "export", "command", "Stored samples as Parquet, CSV or lines of JSON."),
    ("Inspection", "history", "app", "The room that the history of readings takes."),
    ("Inspection", "size", "command", "Cores, memory, disk and bandwidth of a planned fleet."),
    ("Inspection", "runs", "command", "The outcome of every poll."),
    ("Inspection", "events", "command", "Past events, or new ones as they happen."),
    ("Inspection", "poll", "command", "Poll targets now."),
    ("Inspection", "collect", "command", "Try a collector on an address."),
    ("Inspection", "snmp", "app", "Read an SNMP agent: walk, get, identify."),
    ("Inspection", "discover", "command", "Suggest targets that suit an address."),
    ("Inspection", "collectors", "app", "Installed collectors, their options and crashes."),
    ("Inspection", "sinks", "app", "Where readings go: state, lag and losses, and a test."),
    ("Inspection", "notify", "app", "Who is told of alerts: state, deliveries, and a test."),
    ("Inspection", "breaker", "app", "Targets that are not polled, and why."),
    ("Inspection", "deadletter", "app", "Targets that need a person."),
    ("Inspection", "rules", "app", "What is worth an alert: rules, their files, and a test."),
    ("Inspection", "board", "app", "The schedule as it is in Redis."),
    ("Inspection", "jobs", "app", "Periodic work: what runs when, and what failed."),
    ("Inspection", "explain", "command", "What a code means, and what to do."),
    ("Administration", "user", "app", "People who may log in to the page and the API."),
    ("Administration", "token", "app", "Keys of scripts and scrapers for the API."),
    ("Administration", "audit", "command", "Who changed what, from where."),
    ("Administration", "plugin", "app", "Write a collector or a job of your own."),
    ("Administration", "db", "app", "The database's schema."),
    ("Administration", "settings", "command", "Every setting and its origin."),
    ("Administration", "version", "command", "Version of this program."),
)


def _branches() -> Iterator[Branch]:
    """The commands of the table, in the order of the help."""
    for panel, name, attribute, text in _BRANCHES:
        place = attribute if ":" in attribute else f"{name}:{attribute}"
        yield Branch(name, f"poller.cli.commands.{place}", text, panel)


class Root(LazyGroup):
    branches = tuple(_branches())


app = typer.Typer(
    cls=Root,
    name="poller",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A distributed polling platform for network fleets.",
)


def _print_version(requested: bool) -> None:
    if requested:
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
    if color == "never":
        os.environ["NO_COLOR"] = "1"
    elif color == "always":
        os.environ["FORCE_COLOR"] = "1"


def main() -> None:
    plugin_runner.exit_process(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Every failure is printed on stderr."""
    render.begin(as_json="--json" in arguments)
    try:
        return _run(arguments)
    except BrokenPipeError:
        _discard_output()
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
    except Exception as error:  # noqa: BLE001  the door to the terminal: a sentence, no traceback
        return _report(error)


def _report(error: Exception) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        return 2  # the help is printed already
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
    """The printed error for a wrong command line, with the nearest right word."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "poller"
    commands = getattr(context.command, "commands", ()) if context else ()
    message = error.format_message().rstrip(".")

    near = _nearest_choice(message)
    synonym = _synonym(message, commands)
    if synonym:
        near = synonym
        message = message.partition(". ")[0]  # drops Typer's guess by spelling: `start`, `status`

    hint = f"did you mean {near}? (or: {path} --help)" if near else f"{path} --help"
    return errors.ConfigError(message, hint=hint)


def _nearest_choice(message: str) -> str | None:
    """The choice that is spelled most like the value that is none of the choices."""
    match = _NO_CHOICE.search(message)
    if not match:
        return None

    word = match[1]
    choices = re.findall(r"'([^']*)'", match[2])
    near = nearest(word, choices)

    if near:
        return near

    longer = [choice for choice in choices if word and choice.startswith(word)]
    return longer[0] if longer else None


def _synonym(message: str, commands: Container[str]) -> str | None:
    """The command that other programs call by the unknown word."""
    match = _NO_COMMAND.search(message)
    if not match:
        return None
    names = _SYNONYMS.get(match[1], ())
    return next((name for name in names if name in commands), None)


def _bug(error: Exception) -> errors.PollerError:
    text = " ".join(str(error).split())
    return errors.PollerError(
        f"unexpected {type(error).__name__}: {text}",
        hint="this is a bug in poller; the same with poller --verbose ... shows where",
    )


def _discard_output() -> None:
    """Redirect closed output to nowhere, so that the interpreter's flush at exit does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())

    os.close(nowhere)
