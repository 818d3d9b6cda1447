"""The users of a simulated router and their policies. All have the router's password."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from poller.sim.fleet import USERNAME


class Policy(enum.StrEnum):
    """The policies of a group of users, as RouterOS names them."""

    READ = "read"
    WRITE = "write"
    TEST = "test"  # monitor and similar commands


ADMIN = "admin"
LIMITED = "limited"
GUEST = "guest"

USERS: Mapping[str, frozenset[Policy]] = {
    USERNAME: frozenset({Policy.READ, Policy.TEST}),
    ADMIN: frozenset(Policy),
    LIMITED: frozenset({Policy.READ}),  # monitor is refused
    GUEST: frozenset(),  # every command is refused
}
