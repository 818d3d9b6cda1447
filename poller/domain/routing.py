"""Which queue does a target's batch go to? One queue per domain: (collector, required tags)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

QUEUE_PREFIX = "poll."


def queue(collector: str, requires: Mapping[str, str]) -> str:
    """The canonical, readable queue name of a domain: `poll.snmp`, `poll.snmp;site=ams;zone=dmz`."""
    tags = "".join(f";{key}={value}" for key, value in sorted(requires.items()))
    return f"{QUEUE_PREFIX}{collector}{tags}"


def merge(*levels: Mapping[str, str]) -> dict[str, str]:
    """Required tags of site, device and target together; the more specific level wins."""
    merged: dict[str, str] = {}
    for level in levels:
        merged.update(level)
    return merged


def parse(queue_name: str) -> tuple[str, dict[str, str]]:
    """A queue name back to its collector and required tags. A name that is not ours gives tags nobody carries."""
    collector, *tags = queue_name.removeprefix(QUEUE_PREFIX).split(";")
    return collector, {key: value for key, _, value in (tag.partition("=") for tag in tags)}


def serves(queue_name: str, collectors: Collection[str], tags: Mapping[str, str]) -> bool:
    """May a worker with these collectors and tags take batches of that queue? Every required tag must match."""
    collector, required = parse(queue_name)
    return collector in collectors and required.items() <= tags.items()
