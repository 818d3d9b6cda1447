"""Notes about the sites that a change creates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from poller.cli.output import render

if TYPE_CHECKING:
    from poller.service.inventory.new_sites import NewSite

#: Maximum number of new sites that are noted one by one.
MAXIMUM = 5


def print_notes(created: Sequence[NewSite], dry_run: bool = False) -> None:
    """Note each new site, with the existing site that has a similar name."""
    verb = "would make" if dry_run else "made"
    for site in created[:MAXIMUM]:
        guess = f"; did you mean {site.near}?" if site.near else ""
        render.note(f"note: {verb} the new site {site.name}{guess}")
