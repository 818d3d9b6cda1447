"""The queue of a target's batch: one queue per domain, a collector with required tags."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from poller import errors
from poller.domain.inventory import naming

QUEUE_PREFIX = "poll."


def queue_name(collector: str, requires: Mapping[str, str]) -> str:
    """Return the canonical name of a domain's queue: `poll.snmp`, `poll.snmp;site=ams;zone=dmz`."""
    tags = "".join(f";{key}={value}" for key, value in sorted(requires.items()))
    return f"{QUEUE_PREFIX}{collector}{tags}"


def poll_queues(queues: Iterable[str]) -> list[str]:
    """Return the queues of polls among those that a worker serves; the others are of jobs."""
    return [queue for queue in queues if queue.startswith(QUEUE_PREFIX)]


def merge_requirements(*levels: Mapping[str, str]) -> dict[str, str]:
    """Return the required tags of site, device and target together; the last level wins."""
    merged: dict[str, str] = {}
    for level in levels:
        merged.update(level)
    return merged


def parse(queue: str) -> tuple[str, dict[str, str]]:
    """Return the collector and the required tags of a queue name. `is_canonical` checks a name."""
    collector, *tags = queue.removeprefix(QUEUE_PREFIX).split(";")

    required = {}
    for tag in tags:
        key, _, value = tag.partition("=")
        required[key] = value

    return collector, required


def is_canonical(queue: str) -> bool:
    """Whether this is the name of a domain's queue. Redis may hold any other name."""
    collector, required = parse(queue)
    canonical = queue_name(collector, required)
    return queue == canonical


def serves(queue: str, collectors: Collection[str], tags: Mapping[str, str]) -> bool:
    """Whether a worker with these collectors and tags may take batches of the queue.

    The worker must have every required tag.
    """
    collector, required = parse(queue)
    if collector not in collectors or not required.items() <= tags.items():
        return False
    return is_canonical(queue)


def parse_tags(words: Iterable[str], what: str = "worker_tags") -> dict[str, str]:
    """Return a worker's tags from `key=value` words.

    Raises InvalidSetting, which names the word.
    """
    tags: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        fault = naming.tag_fault(key, value) if equals else "there is no ="
        if fault:
            shown = naming.printable(word)
            raise errors.InvalidSetting(
                f'{what}: "{shown}" is not key=value', fault, "for example zone=dmz,site=ams"
            )
        if key in tags:
            raise errors.InvalidSetting(
                f'{what}: the key "{key}" is given twice, with {tags[key]} and {value}',
                "a worker has one value for each key",
                f"start another worker for {key}={value}",
            )
        tags[key] = value
    return tags
