"""The navigation of all pages. A page that a visitor may not open is not in it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.access.scopes import Scope


class Group(enum.StrEnum):
    """A subject of pages. Groups stand apart in the navigation, in this order."""

    NETWORK = "Network"
    PLATFORM = "Platform"
    ADMINISTRATION = "Administration"


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the navigation. `key` is typed after `g`; "" for none."""

    group: Group
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
    Entry(Group.NETWORK, "Overview", "", "o"),
    Entry(Group.NETWORK, "Alerts", "alerts", "a", every_site=False),
    Entry(Group.NETWORK, "Devices", "devices", "d"),
    Entry(Group.NETWORK, "Sites", "sites", "s"),
    Entry(Group.NETWORK, "Maintenance", "maintenance", "m", every_site=False),
    Entry(Group.NETWORK, "Events", "events", "v", every_site=False),
    Entry(Group.NETWORK, "Wall", "wall", "w"),
    Entry(Group.PLATFORM, "Dead letters", "letters", "x", every_site=False),
    Entry(Group.PLATFORM, "Workers", "workers", "k"),
    Entry(Group.PLATFORM, "Jobs", "jobs", "j"),
    Entry(Group.PLATFORM, "Collectors", "collectors", "c"),
    Entry(Group.PLATFORM, "Sinks", "sinks", "n"),
    Entry(Group.PLATFORM, "Notifications", "notifications"),
    Entry(Group.ADMINISTRATION, "Credentials", "credentials", "e", every_site=False),
    Entry(Group.ADMINISTRATION, "Users", "users", "u", Scope.ADMIN),
    Entry(Group.ADMINISTRATION, "Tokens", "tokens", "t", Scope.ADMIN),
    Entry(Group.ADMINISTRATION, "Audit", "audit", "h", Scope.ADMIN),
    Entry(Group.ADMINISTRATION, "Settings", "settings", "i", Scope.ADMIN),
)
