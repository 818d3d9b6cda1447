"""The meaning of every code of a run, an error or an exit, for the command line and the API."""

from __future__ import annotations

import difflib
import re
from operator import attrgetter
from typing import Any

from poller import errors
from poller.domain.failures import error_codes

EXIT_CODES = {
    0: "done, and the result is good",
    1: "done, and the result is bad: a device fails, a part was refused",
    2: "wrong usage or configuration; nothing was changed",
    3: "a name that does not exist",
    4: "not allowed",
    5: "Redis or the database cannot be used; it is safe to run the same again",
    124: "the time to wait ran out",
    130: "interrupted",
    141: "the program that reads the output has ended",
}


def entries() -> list[dict[str, Any]]:
    """Every code: of runs, of errors, of exits."""
    runs = [_run_item(row) for row in error_codes.TABLE.values()]
    exits = [_item("exit-codes", str(code), meaning) for code, meaning in EXIT_CODES.items()]
    return [*runs, *_errors(), *exits]


def by_code() -> dict[str, dict[str, Any]]:
    """Every code in lower case with its entry."""
    return {item["code"].lower(): item for item in entries()}


def _run_item(row: error_codes.ErrorCode) -> dict[str, Any]:
    """The row of the failure policy: meaning, hint and consequences."""
    return {
        **_item("runs", row.code, row.meaning, row.hint),
        "category": row.category.value,
        "retried": row.retried,
        "breaker": row.breaker.value,
        "dead_letter": row.dead_letter.value,
        "device": row.reach.value,
    }


def tree() -> dict[type[errors.PollerError], str]:
    """Every printed error class with its meaning, from the tree in poller/errors.py."""
    meanings = dict(re.findall(r"[|' ]- (\w+) +(.+)", errors.__doc__ or ""))
    kinds: list[type[errors.PollerError]] = [vars(errors)[name] for name in meanings]
    kinds.sort(key=attrgetter("code"))
    return {kind: meanings[kind.__name__] for kind in kinds}


def _errors() -> list[dict[str, Any]]:
    """The items of all error classes; a device error has the hint of its run code."""
    items = []
    for kind, meaning in tree().items():
        run_code = error_codes.TABLE.get(getattr(kind, "error_code", ""))
        if run_code:
            hint = run_code.hint
        else:
            hint = (
                f"each error has a hint of its own; a command ends with exit code {kind.exit_code}"
            )

        text = f"{kind.__name__}: {meaning}"
        items.append(_item("errors", kind.code, text, hint))

    return items


def _item(kind: str, code: str, meaning: str, hint: str = "") -> dict[str, Any]:
    return {"code": code, "kind": kind, "meaning": meaning, "try": hint}


def find(word: str, by_code: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The item of a code. Raises NotFound with the nearest code."""
    item = by_code.get(word.lower())
    if item is not None:
        return item

    hint = "poller explain"
    near = difflib.get_close_matches(word.lower(), by_code, n=1)
    if near:
        hint = f"poller explain {by_code[near[0]]['code']}; all codes: poller explain"

    raise errors.NotFound(f'there is no code "{word}"', hint=hint)
