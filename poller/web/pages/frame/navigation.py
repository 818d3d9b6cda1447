"""The navigation of all pages. A page that a visitor may not open is not in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.access.scopes import Scope


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the navigation. `key` is typed after `g`; "" for none."""

    title: str
    path: str  # below the root; "" is the overview
    key: str = ""
    needs: Scope = Scope.READ
    every_site: bool = True  # nothing for a token of one site

    def holds(self, path: str) -> bool:
        """Whether a page is this one, or one below it."""
        return path == self.path or bool(self.path and path.startswith(f"{self.path}/"))


#: The pages in the order of the navigation.
ENTRIES: Sequence[Entry] = (
    Entry("Overview", "", "o"),
    Entry("Alerts", "alerts", "a", every_site=False),
    Entry("Devices", "devices", "d"),
    Entry("Sites", "sites", "s"),
    Entry("Jobs", "jobs", "j"),
    Entry("Collectors", "collectors", "c"),
    Entry("Maintenance", "maintenance", "m", every_site=False),
    Entry("Wall", "wall", "w"),
)
