"""The address of the page of dead letters: filter, grouping and page. It is the whole state of the
view, so that it can be shared.
"""

from __future__ import annotations

import enum
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Depends, Query

from poller.domain.failures.dead_letter import GroupBy, Reason
from poller.domain.fleet import search_words
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.service.operations.letter_actions import LetterQuery
from poller.web.api.contract import paging
from poller.web.api.contract.bulk_bodies import LONGEST_WHERE
from poller.web.api.operations.letters_api import LONGEST_MESSAGE

#: Letters of one page.
LIMIT = 50


class View(enum.StrEnum):
    """How the letters are shown: in groups of one kind, or one by one."""

    CAUSE = "cause"
    TEXT = "text"
    COLLECTOR = "collector"
    SITE = "site"
    DEVICE = "device"
    LETTERS = "letters"

    @property
    def group_by(self) -> GroupBy | None:
        """The grouping; None for letters one by one."""
        return None if self is View.LETTERS else GroupBy(self.value)

    @property
    def words(self) -> str:
        return "one by one" if self is View.LETTERS else self.value


@dataclass(frozen=True, slots=True)
class LettersQuery:
    """The parameters of the address. The texts are as they were typed."""

    where: str = ""
    reason: str = ""
    message: str = ""  # the whole text of an error
    view: View = View.CAUSE
    after: str = ""  # the cursor

    @property
    def wanted(self) -> TargetFilter:
        """The filter of targets. Raises InvalidInput."""
        return search_words.as_filter(self.where)

    @property
    def letters(self) -> LetterQuery:
        """The query of the service. Raises InvalidInput."""
        return LetterQuery(self.reason, self.wanted, message=self.message)

    @property
    def is_narrowed(self) -> bool:
        return bool(self.where or self.reason or self.message)

    @property
    def after_key(self) -> tuple[int, int] | None:
        """Where the page before ended. Raises InvalidInput for a wrong cursor."""
        key = paging.decode(self.after, int, int)
        return (key[0], key[1]) if key else None

    def url(self, path: str = "letters", **changes: object) -> str:
        """The address with some parameters changed. Every change goes back to the first page."""
        query = replace(self, **{"after": "", **changes})  # type: ignore[arg-type]
        given = {each.name: getattr(query, each.name) for each in fields(query)}
        if query.view is View.CAUSE:
            del given["view"]
        kept = {name: str(value) for name, value in given.items() if value}
        return f"{path}?{urlencode(kept)}" if kept else path

    def of_letters(self, letters: LetterQuery) -> str:
        """The address of narrower letters, one by one."""
        where = target_filter.text(letters.wanted)
        changes = {"where": where, "reason": letters.reason, "message": letters.message}
        return self.url(view=View.LETTERS, **changes)


def command(verb: str, query: LetterQuery, flags: Sequence[str] = ()) -> str:
    """The command that does the same: `poller deadletter drop --reason auth_failed`."""
    words = ["poller", "deadletter", verb]
    words += [device if name is None else f"{device}/{name}" for device, name in query.named]
    where = "" if query.named else target_filter.text(query.wanted)
    options = (("reason", query.reason), ("where", where), ("message", query.message))
    for option, text in options:
        if text:
            words += [f"--{option}", text]
    is_any = len(words) == 3
    if is_any and verb != "list":
        words.append("--all")
    return shlex.join([*words, *flags])


def _query(
    where: Annotated[str, Query(max_length=LONGEST_WHERE)] = "",
    reason: Reason | Literal[""] = "",
    message: Annotated[str, Query(max_length=LONGEST_MESSAGE)] = "",
    view: View = View.CAUSE,
    after: Annotated[str, Query(max_length=2_000)] = "",
) -> LettersQuery:
    return LettersQuery(where.strip(), str(reason), message, view, after)


#: A parameter of a route: FastAPI makes it from the address.
RequestedLetters = Annotated[LettersQuery, Depends(_query)]
