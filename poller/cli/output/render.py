"""The forms of output: tables on a terminal, tab-separated lines in a pipe, JSON, errors.

Data goes to stdout; notes, progress and errors go to stderr. Texts of devices are never markup.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import errors
from poller.cli.output.columns import Column, Item, one_line, plain, rfc3339
from poller.presentation import formatting
from poller.security.redaction import redact_url

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="Maximum number of rows to print.")]

#: Set by the root command.
verbose = False
_errors_as_json = False


def begin(as_json: bool) -> None:
    """Reset the state of this module for one command line."""
    global verbose, _errors_as_json
    verbose = False
    _errors_as_json = as_json


def accessible() -> bool:
    """True when output is for a screen reader: no tables and no moving parts."""
    return os.environ.get("POLLER_ACCESSIBLE", "") not in ("", "0")


def can_draw() -> bool:
    """True on a UTF-8 terminal that is not read by a screen reader."""
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower()
    return sys.stdout.isatty() and encoding.startswith("utf") and not accessible()


def listing(
    schema: str, items: Sequence[Item], columns: Sequence[Column], as_json: bool, **more: Any
) -> None:
    """Print a list. `more` adds fields to the JSON object, for example `next`."""
    if as_json:
        document(schema, {"items": list(items), **more})
    elif accessible():
        for item in items:
            echo(_spoken(item, columns))
    elif not sys.stdout.isatty():
        echo("\t".join(each.title.lower() for each in columns))
        for item in items:
            echo("\t".join(one_line(each.text(item)) for each in columns))
    elif items:  # an empty table is less clear than the note that follows it
        _table(items, columns)


def _spoken(item: Item, columns: Sequence[Column]) -> str:
    """`name: sw1; site: ams`: an item for a screen reader."""
    parts = []
    for each in columns:
        text = each.text(item)
        if text:
            title = each.title.lower()
            parts.append(f"{title}: {text}")
    return "; ".join(parts)


def record(schema: str, item: Item, as_json: bool) -> None:
    """Print one item, one field per line."""
    if as_json:
        document(schema, dict(item))
        return

    aligned = sys.stdout.isatty() and not accessible()
    width = max(map(len, item)) + 1 if aligned else 0

    for key, value in item.items():
        label = f"{key.replace('_', ' ')}:"
        echo(f"{label.ljust(width)} {one_line(plain(value))}")


def changed(message: str, schema: str, item: Item, as_json: bool, then: str = "") -> None:
    """Print what a command did, and on stderr the command that may come next."""
    if as_json:
        document(schema, dict(item))
        return

    echo(message)
    if then:
        note(f"next: {then}")


def document(schema: str, body: Mapping[str, Any]) -> None:
    """Print `{"schema": ..., "as_of": ..., ...}`.

    A schema number may gain fields, never lose one.
    """
    whole = {"schema": schema, "as_of": rfc3339(datetime.now(UTC)), **body}
    text = json.dumps(whole, ensure_ascii=False, default=_jsonable)
    echo(formatting.visible(text))


def echo(text: str) -> None:
    sys.stdout.write(text + "\n")


def paragraph(text: str) -> None:
    """Print a sentence: on a terminal it is wrapped between words, in a pipe it is one line."""
    if not sys.stdout.isatty() or accessible():
        echo(text)
        return
    for line in wrapped(text, console(), indent=2):
        echo(line)


def note(text: str) -> None:
    """Print a line that is not part of the result, on stderr."""
    sys.stderr.write(text + "\n")


def warning(text: str) -> None:
    """Print on stderr what went wrong beside an action; nothing for an empty text."""
    if text:
        note(f"note: {text}")


def notes(texts: Iterable[str], word: str = "note") -> None:
    """Print each text as a note or a warning."""
    for text in texts:
        note(f"{word}: {text}")


def error(failure: errors.PollerError) -> None:
    """Print `error[P101]: message`, `  cause: ...`, `  try: ...` and details, or JSON."""
    details: Sequence[Any] = getattr(failure, "details", ())
    if _errors_as_json:
        _json_error(failure, details)
        return

    message = redact_url(failure.message)
    _paint(f"error[{failure.code}]", f": {message}")
    for detail in details:
        sys.stderr.write(f"  {redact_url(str(detail))}\n")

    if failure.cause:
        sys.stderr.write(f"  cause: {redact_url(failure.cause)}\n")

    if failure.hint:
        sys.stderr.write(f"  try: {redact_url(failure.hint)}\n")


def _json_error(failure: errors.PollerError, details: Sequence[Any]) -> None:
    """Print an error as one JSON object on stderr."""
    body: dict[str, Any] = {
        "code": failure.code,
        "message": failure.message,
        "cause": failure.cause,
        "try": failure.hint,
    }
    if details:
        body["details"] = [detail._asdict() for detail in details]

    sys.stderr.write(json.dumps({"error": body}, ensure_ascii=False) + "\n")


def _jsonable(value: Any) -> Any:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)

    return str(value)


def _table(items: Sequence[Item], columns: Sequence[Column]) -> None:
    """Print a table, and a note that names the columns left out."""
    from poller.cli.output import table

    left_out = table.draw(items, columns, console())
    if left_out:
        titles = ", ".join(left_out)
        note(f"no room for {titles}: a wider terminal or --json shows all")


def console(stderr: bool = False) -> Console:
    """A Rich console. Rich honours NO_COLOR, FORCE_COLOR and TERM, and detects a terminal."""
    from rich.console import Console

    class PipeSafeConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # main.py ends quietly: `poller status | head -1` is no failure

    return PipeSafeConsole(stderr=stderr, highlight=False, emoji=False, soft_wrap=False)


def wrapped(text: str, screen: Console, indent: int) -> list[str]:
    """The text within the width of a terminal; in a pipe one line, for grep."""
    if not screen.is_terminal or not text.strip():
        return [text]
    return textwrap.wrap(
        text,
        screen.width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _paint(word: str, rest: str) -> None:
    """Write to stderr, the word in bold red where colours are on. Rich is not imported for this."""
    forced = os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0")
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if refused or not (forced or sys.stderr.isatty()):
        sys.stderr.write(word + rest + "\n")
    else:
        sys.stderr.write(f"\x1b[1;31m{word}\x1b[0m{rest}\n")
