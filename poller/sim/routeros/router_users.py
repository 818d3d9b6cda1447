"""Who may log in to a simulated router, and what for? All have the router's password."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from poller.sim.fleet import USERNAME


class Policy(enum.StrEnum):
    """RouterOS's names for what a group of users may do."""

    READ = "read"
    WRITE = "write"
    TEST = "test"  # monitor and the like


ADMIN = "admin"
LIMITED = "limited"
GUEST = "guest"

USERS: Mapping[str, frozenset[Policy]] = {
    USERNAME: frozenset({Policy.READ, Policy.TEST}),
    ADMIN: frozenset(Policy),
    LIMITED: frozenset({Policy.READ}),  # monitor is refused
    GUEST: frozenset(),  # everything is
}
