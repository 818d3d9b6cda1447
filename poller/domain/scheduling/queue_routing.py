"""Which queue does a target's batch go to? One queue per domain: (collector, required tags)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from poller import errors
from poller.domain.inventory import naming

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
    """A queue name back to its collector and required tags; see `is_ours` for a name that somebody else made."""
    collector, *tags = queue_name.removeprefix(QUEUE_PREFIX).split(";")
    return collector, {key: value for key, _, value in (tag.partition("=") for tag in tags)}


def is_ours(queue_name: str) -> bool:
    """Is that the one canonical name of some domain? Anything may stand in Redis."""
    return queue(*parse(queue_name)) == queue_name


def serves(queue_name: str, collectors: Collection[str], tags: Mapping[str, str]) -> bool:
    """May a worker with these collectors and tags take batches of that queue? Every required tag must match."""
    collector, required = parse(queue_name)
    return collector in collectors and required.items() <= tags.items() and is_ours(queue_name)


def parse_tags(words: Iterable[str], what: str = "worker_tags") -> dict[str, str]:
    """What a worker carries, from `key=value` words. Raises InvalidSetting, which names the word and what is odd."""
    tags: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        odd = naming.why_not_a_tag(key, value) if equals else "there is no ="
        if odd:
            shown = naming.printable(word)
            raise errors.InvalidSetting(
                f'{what}: "{shown}" is not key=value', odd, "for example zone=dmz,site=ams"
            )
        if key in tags:
            raise errors.InvalidSetting(
                f'{what}: the key "{key}" is given twice, with {tags[key]} and {value}',
                "a worker has one value for each key",
                f"start another worker for {key}={value}",
            )
        tags[key] = value
    return tags
