"""The confirmation of a change of many: a program names the number that a dry run told it."""

from __future__ import annotations

from poller import errors

#: Above this count a person types the number: a `y` or a button is too easy.
MANY = 1_000


def refuse_unconfirmed(action: str, count: int, number: int | None, free: int = 1) -> None:
    """Raise NotConfirmed unless `number` is the number of matches. Up to `free` need none.

    The action is a phrase: "reset the breakers of 12 targets".
    """
    if number == count or (number is None and count <= free):
        return
    told = "confirm is missing" if number is None else f"confirm is {number:,}"
    raise errors.NotConfirmed(
        f"this would {action}, and {told}; nothing was done", hint=f"send confirm: {count}"
    )
