"""The tags that a target requires of its workers: which of them is missing, and who asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from poller.domain.scheduling import unroutable
from poller.domain.why.target_facts import InventoryRow, RequiredTag, TargetFacts


def of_levels(
    site: Mapping[str, str], device: Mapping[str, str], target: Mapping[str, str]
) -> list[RequiredTag]:
    """The required tags with the level each comes from; the last level that names a key wins."""
    levels = {"site": site, "device": device, "target": target}
    found = {
        key: RequiredTag(f"{key}={value}", level)
        for level, tags in levels.items()
        for key, value in tags.items()
    }
    return list(found.values())


def missing(facts: TargetFacts) -> list[RequiredTag]:
    """The required tags that workers lack, which keep the target from being polled."""
    row = facts.inventory
    if row is None:
        return []
    needs = unroutable.listed_needs(facts.queue_name, facts.cluster.living)
    return [tag for tag in row.required if f"tag {tag.text}" in needs]


def origin(facts: TargetFacts) -> str:
    """`site ams requires zone=dmz`; empty if no tag is missing."""
    row = facts.inventory
    if row is None:
        return ""
    names = {"site": f"site {row.site}", "device": f"device {row.device}", "target": "the target"}
    lacking = missing(facts)
    levels = dict.fromkeys(tag.of for tag in lacking)
    return ", ".join(f"{names[level]} requires {_texts(lacking, level)}" for level in levels)


def ways_out(facts: TargetFacts) -> str:
    """Start a worker with all tags, or let the level that requires a missing one require it not."""
    row = facts.inventory
    lacking = missing(facts)
    if row is None or not lacking:
        return "poller workers"
    tags = ",".join(tag.text for tag in row.required)
    return f"poller worker --tags {tags}, or {_edit(row, lacking)}"


def _edit(row: InventoryRow, lacking: Sequence[RequiredTag]) -> str:
    level = lacking[0].of
    command = f"poller target edit {row.name}"
    if level == "site":
        command = f"poller site edit {row.site}"
    elif level == "device":
        command = f"poller device edit {row.device}"
    kept = [tag.text for tag in row.required if tag.of == level and tag not in lacking]
    options = [f"--require {text}" for text in kept] or ["--no-requires"]
    return " ".join([command, *options])


def _texts(tags: Sequence[RequiredTag], level: str) -> str:
    return " and ".join(tag.text for tag in tags if tag.of == level)
