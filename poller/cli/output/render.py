"""How things look: tables for a terminal, tab-separated lines for a pipe, JSON for programs, one error form.

Data goes to stdout; notes, progress and errors go to stderr. Device texts are never taken for markup.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import errors
from poller.cli.output.columns import Column, Item, one_line, plain, rfc3339
from poller.security.redaction import redact_url

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

#: Set by the root command.
verbose = False
_errors_as_json = False


def begin(as_json: bool) -> None:
    """Reset for one command line."""
    global verbose, _errors_as_json
    verbose, _errors_as_json = False, as_json


def accessible() -> bool:
    """No tables, no moving parts: for screen readers."""
    return os.environ.get("POLLER_ACCESSIBLE", "") not in ("", "0")


def listing(
    schema: str, items: Sequence[Item], columns: Sequence[Column], as_json: bool, **more: Any
) -> None:
    """A list in the form its reader wants. `more` goes into the JSON object (`next`, for example)."""
    if as_json:
        document(schema, {"items": list(items), **more})
    elif accessible():
        for item in items:
            echo("; ".join(f"{c.title.lower()}: {c.text(item)}" for c in columns if c.text(item)))
    elif sys.stdout.isatty():
        if items:  # a head without rows says less than the note that follows
            _table(items, columns)
    else:
        echo("\t".join(c.title.lower() for c in columns))
        for item in items:
            echo("\t".join(one_line(c.text(item)) for c in columns))


def record(schema: str, item: Item, as_json: bool) -> None:
    """One thing: its fields, one a line."""
    if as_json:
        document(schema, dict(item))
        return
    width = 0 if accessible() or not sys.stdout.isatty() else max(map(len, item)) + 1
    for key, value in item.items():
        label = f"{key.replace('_', ' ')}:"
        echo(
            f"{label:<{width}} {one_line(plain(value))}"
            if width
            else f"{label} {one_line(plain(value))}"
        )


def changed(message: str, schema: str, item: Item, as_json: bool, then: str = "") -> None:
    """What a command did, and the command that may come next."""
    if as_json:
        document(schema, dict(item))
        return
    echo(message)
    if then:
        note(f"next: {then}")


def document(schema: str, body: Mapping[str, Any]) -> None:
    """`{"schema": ..., "as_of": ..., ...}`; fields are only ever added to a schema of one number."""
    whole = {"schema": schema, "as_of": rfc3339(datetime.now(UTC)), **body}
    echo(json.dumps(whole, ensure_ascii=False, default=_jsonable))


def echo(text: str) -> None:
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """Something worth knowing that is no result."""
    sys.stderr.write(text + "\n")


def error(failure: errors.PollerError) -> None:
    """`error[P101]: what` / `  cause: why` / `  try: command`; or the same as JSON. Lines of detail follow."""
    details: Sequence[Any] = getattr(failure, "details", ())
    if _errors_as_json:
        body = {
            "code": failure.code,
            "message": failure.message,
            "cause": failure.cause,
            "try": failure.hint,
        }
        if details:
            body["details"] = [detail._asdict() for detail in details]  # type: ignore[assignment]
        sys.stderr.write(json.dumps({"error": body}, ensure_ascii=False) + "\n")
        return
    _paint(f"error[{failure.code}]", "bold red", f": {redact_url(failure.message)}")
    for detail in details:
        sys.stderr.write(f"  {redact_url(str(detail))}\n")
    for label, text in (("cause", failure.cause), ("try", failure.hint)):
        if text:
            sys.stderr.write(f"  {label}: {redact_url(text)}\n")


def _jsonable(value: Any) -> Any:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    return str(value)


def _table(items: Sequence[Item], columns: Sequence[Column]) -> None:
    from poller.cli.output import table

    if left_out := table.draw(items, columns, console()):
        note(f"no room for {', '.join(left_out)}: a wider terminal or --json shows all")


def console(stderr: bool = False) -> Console:
    """Rich's console: it minds NO_COLOR, FORCE_COLOR, TERM and whether this is a terminal."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # `poller status | head -1` is no failure: see main.py

    return Plain(stderr=stderr, highlight=False, emoji=False, soft_wrap=False)


def _paint(word: str, style: str, rest: str) -> None:
    """A coloured word where colours are wanted, without loading anything where they are not."""
    forced = os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0")
    dumb = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if dumb or not (forced or sys.stderr.isatty()):
        sys.stderr.write(word + rest + "\n")
        return
    codes = {"bold red": "1;31", "bold yellow": "1;33"}
    sys.stderr.write(f"\x1b[{codes[style]}m{word}\x1b[0m{rest}\n")
