"""The devices as scrape targets of Prometheus, for its discovery by HTTP (`http_sd`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from poller.db.inventory import credential_rows, inventory_feed
from poller.domain.access.actor import Actor
from poller.domain.inventory.host_port import HostPort
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.metrics import outside_labels
from poller.service import site_limit
from poller.service.selection import target_page

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Prometheus drops labels with two underscores after relabelling.
_PREFIX = "__meta_poller_"
#: Targets that are read at a time.
PAGE = 1_000


def pages(services: Services, actor: Actor, wanted: TargetFilter) -> Iterator[list[dict[str, Any]]]:
    """Yield target groups, one for each device with an enabled target that matches.

    Raises NotFound for a site or collector that does not exist, NotAllowed, StoreError.
    """
    wanted = site_limit.limited(actor, wanted)
    names = credential_rows.names(services.engine)
    after = None
    kept: list[PollTarget] = []  # of the last device of a page: the next page may have more
    while True:
        page = target_page.target_page(services, wanted, after, PAGE)
        ids = [target.id for target in page.targets if target.enabled]
        found = inventory_feed.poll_targets(services.engine, ids)
        targets = kept + [found[each] for each in ids if each in found]
        after = page.next
        kept = []
        if after is not None and targets:
            last = targets[-1].device_id
            kept = [target for target in targets if target.device_id == last]
            targets = targets[: len(targets) - len(kept)]
        groups = groupby(targets, key=lambda target: target.device_id)
        yield [_group(list(of_device), names) for _, of_device in groups]
        if after is None:
            return


def _group(targets: list[PollTarget], names: Mapping[int, str]) -> dict[str, Any]:
    """Return the target group of a device."""
    first = targets[0]
    labels = {
        "device": first.device,
        "site": first.site,
        "address": first.address,
        "tags": _listed(sorted(first.tags)),
        "collectors": _listed(sorted({target.collector for target in targets})),
    }
    for target in targets:
        prefix = outside_labels.valid_label_name(target.collector)
        labels.setdefault(f"{prefix}_interval_seconds", f"{target.interval_ms / 1000:g}")
        labels.setdefault(f"{prefix}_modules", _modules(target.options.get("modules")))
        auth = names.get(target.credential_id or 0, "")
        labels.setdefault(f"{prefix}_auth", auth)
    port = next((target.options["port"] for target in targets if target.options.get("port")), None)
    return {
        "targets": [str(HostPort(first.address, port))],
        "labels": {f"{_PREFIX}{name}": text for name, text in labels.items() if text},
    }


def _listed(words: Iterable[str]) -> str:
    """Return the words between commas, also at both ends, so that a pattern finds each alone."""
    text = ",".join(words)
    return f",{text}," if text else ""


def _modules(option: Any) -> str:
    if isinstance(option, str):
        return option
    return ",".join(map(str, option)) if isinstance(option, list | tuple) else ""
