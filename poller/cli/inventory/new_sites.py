"""Which sites does a change make? A site is made by its first device, so a typo makes one, too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from poller.cli.output import render
from poller.domain.inventory.did_you_mean import nearest

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

_DIGITS = re.compile(r"\d+")
#: So many are told one by one; a file may name a thousand.
MOST = 5


class NewSite(NamedTuple):
    name: str
    near: str | None  # one that was there before, and is spelled much like it


def of(engine: Engine, names: Iterable[str | None]) -> list[NewSite]:
    """Those that do not exist yet. To be asked before the change."""
    from poller.db.inventory import sites

    wanted = dict.fromkeys(name for name in names if name)
    known = [site.name for site in sites.listing(engine)] if wanted else []
    new = [name for name in wanted if name not in known]
    return [
        NewSite(name, nearest(name, [each for each in known if not _next_to(name, each)]))
        for name in new
    ]


def _next_to(name: str, other: str) -> bool:
    """`pop-12` is no misspelled `pop-11`."""
    numbers = [list(map(int, _DIGITS.findall(each))) for each in (name, other)]
    return _DIGITS.sub("", name) == _DIGITS.sub("", other) and numbers[0] != numbers[1]


def tell(made: Sequence[NewSite], dry_run: bool = False) -> None:
    verb = "would make" if dry_run else "made"
    for name, near in made[:MOST]:
        render.note(
            f"note: {verb} the new site {name}" + (f"; did you mean {near}?" if near else "")
        )
