"""`poller explain CODE`: what a code of a run, an error or an exit means, and what to do about it."""

from __future__ import annotations

import difflib
import re
from typing import Annotated, Any

import typer

from poller import errors
from poller.cli.output import render
from poller.cli.output.columns import Fit, column
from poller.cli.output.render import Json
from poller.domain.failures import error_codes

EXIT_CODES = {
    0: "done, and the answer is good",
    1: "done, and the answer is bad: a device fails, a part was refused",
    2: "wrong usage or configuration; nothing was changed",
    3: "a name that does not exist",
    4: "not allowed",
    5: "Redis or the database cannot be reached; it is safe to run the same again",
    124: "--wait ran out",
    130: "interrupted",
    141: "nobody reads the output any more",
}
_COLUMNS = (
    column("CODE", "code", fit=Fit.WHOLE),
    column("MEANING", "meaning", fit=Fit.WRAP),
    column("TRY", "try", fit=Fit.WRAP),
)


def command(
    codes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CODE]...", help="As timeout, P301, 5 or exit-codes. None: all there are."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what a code means: of a run, of an error, or of an exit."""
    known = {item["code"].lower(): item for item in entries()}
    items: list[dict[str, Any]] = []
    for word in codes or ("runs", "errors", "exit-codes"):
        kind = word.lower()
        found = [item for item in known.values() if item["kind"] == kind]
        items += found or [_one(word, known)]
    if codes and len(items) == 1:
        render.record("poller.explain/1", items[0], as_json)
    else:
        render.listing("poller.explain/1", items, _COLUMNS, as_json)


def entries() -> list[dict[str, Any]]:
    """Every code: of runs, of errors, of exits."""
    runs = [_run_item(row) for row in error_codes.TABLE.values()]
    exits = [_item("exit-codes", str(code), meaning) for code, meaning in EXIT_CODES.items()]
    return [*runs, *_errors(), *exits]


def _run_item(row: error_codes.ErrorCode) -> dict[str, Any]:
    """The row of the failure policy: meaning, hint and consequences."""
    return {
        **_item("runs", row.code, row.meaning, row.hint),
        "category": row.category.value,
        "retried": row.retried,
        "breaker": row.breaker.value,
        "dead_letter": row.dead_letter.value,
    }


def tree() -> dict[type[errors.PollerError], str]:
    """Every error class that is printed, with its meaning from the tree in poller/errors.py."""
    meanings = dict(re.findall(r"[|' ]- (\w+) +(.+)", errors.__doc__ or ""))
    kinds: list[type[errors.PollerError]] = [vars(errors)[name] for name in meanings]
    return {kind: meanings[kind.__name__] for kind in sorted(kinds, key=lambda kind: kind.code)}


def _errors() -> list[dict[str, Any]]:
    items = []
    for kind, meaning in tree().items():
        of_runs = error_codes.TABLE.get(getattr(kind, "error_code", ""))
        hint = (
            of_runs.hint
            if of_runs
            else f"the error says it behind `try:`; the exit code is {kind.exit_code}"
        )
        items.append(_item("errors", kind.code, f"{kind.__name__}: {meaning}", hint))
    return items


def _item(kind: str, code: str, meaning: str, hint: str = "") -> dict[str, Any]:
    return {"code": code, "kind": kind, "meaning": meaning, "try": hint}


def _one(word: str, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    found = known.get(word.lower())
    if found is None:
        near = difflib.get_close_matches(word.lower(), known, n=1)
        hint = (
            f"poller explain {known[near[0]]['code']}   (poller explain lists all)"
            if near
            else "poller explain"
        )
        raise errors.NotFound(f'there is no code "{word}"', hint=hint)
    return found
