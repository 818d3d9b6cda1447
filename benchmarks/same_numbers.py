"""A comparison of mktxp and poller on one router: every sample of mktxp must be among ours.

Our readings have few labels; the others are on the info of the row (decision 24). A sample of mktxp
matches if one of our rows has its name, value and labels. Known differences are listed with the
reason, and no others are allowed.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.equal import Sample
from poller import errors
from poller.collectors.routeros.families import FAMILIES
from poller.collectors.routeros.families.family import PREFIX
from poller.domain.metrics.reading import ReadingSet

Labels = Mapping[str, str]

#: Names of mktxp -> our names, where mktxp misspells one or our info replaces several.
RENAMED = {
    "interface_comment_info": "interface_info",
    "interface_type_info": "interface_info",
    "interface_mac_address_info": "interface_info",
    "interface_default_name_info": "interface_info",
    "interface_vlan_info_info": "interface_vlan_info",
    "w60g_remote_address_info": "w60g_info",
    "w60g_tx_sector_info": "w60g_info",
    "dhcp_lease_info": "dhcp_lease_expires_after",
    "queue_simple_queued_bytes_downloadd": "queue_simple_queued_bytes_download",
}
#: Labels of mktxp that are values of ours, because a changing label makes a new series.
MEASURED = {
    ("netwatch_info", "status"): "netwatch_status",
    ("capsman_interfaces_info", "current_registered_clients"): "capsman_interface_clients",
}
#: Labels of mktxp that count down. Our value is the instant at which a certificate expires.
_LEFT_OUT = {("certificate_expiration_timestamp_seconds", "expires_after")}
_FLAGS = {"true": "1", "false": "0", "yes": "1", "no": "0"}
_NO_LEASE = "No DHCP Record"
_ANY = "*"
_LATELY_S = 3600


@dataclass(frozen=True, slots=True)
class Row:
    """One of our samples, with the labels of the info that belongs to it."""

    labels: Labels
    value: float


class Ours:
    """Our readings by name, with all labels of their row."""

    def __init__(self, readings: ReadingSet) -> None:
        self._rows: dict[
            tuple[str, str], list[Row]
        ] = {}  # by metric and the label `name`, which most have
        infos: dict[tuple[str, ...], Labels] = {}
        for reading in readings:
            name = reading.name.removeprefix(PREFIX)
            infos |= {
                (name, *_identity(reading.labels, labels)): reading.labels
                for labels in _OF_INFO.get(name, ())
            }
        for reading in readings:
            name = reading.name.removeprefix(PREFIX)
            info, identity = _INFOS.get(name, ("", ()))
            more = infos.get((info, *_identity(reading.labels, identity)), {})
            row = Row(_comparable(name, {**more, **reading.labels}), reading.value)
            for at in {row.labels.get("name", ""), ""}:
                self._rows.setdefault((name, at), []).append(row)

    def has(self, name: str, labels: Labels, value: float) -> bool:
        return any(_equal(row.value, value) for row in self.rows(name, labels))

    def rows(self, name: str, labels: Labels) -> Iterator[Row]:
        """Return the rows with these labels, regardless of others."""
        found = self._rows.get((name, labels.get("name", "")), ())
        return (
            row
            for row in found
            if all(text in (_ANY, row.labels.get(key, "")) for key, text in labels.items())
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """A known difference. `explains` returns whether it is the reason for a missing sample."""

    what: str
    why: str
    explains: Callable[[Ours, str, Labels, float], bool]


def _zero(ours: Ours, name: str, labels: Labels, value: float) -> bool:
    return value == 0 and name in _METRICS and not list(ours.rows(name, labels))


def _own_name(ours: Ours, name: str, labels: Labels, value: float) -> bool:
    return name == "interface_info" and labels.get("default_name") == labels.get("name") != ""


def _mtu(ours: Ours, name: str, labels: Labels, value: float) -> bool:
    return name == "interface_l2mtu" and ours.has("interface_mtu", labels, value)


def _size(ours: Ours, name: str, labels: Labels, value: float) -> bool:
    return name == "ip_pool_total_ipv6" and value == 0


def _neighbors(ours: Ours, name: str, labels: Labels, value: float) -> bool:
    known = {key: labels.get(key, "") for key in ("address", "interface", "mac_address")}
    return name == "ipv6_neighbor_info" and ours.has("neighbor_info", known, 1)


def _dates(ours: Ours, name: str, labels: Labels, value: float) -> bool:
    return (
        name == "active_users_info"
        and bool(list(ours.rows(name, labels)))
        and abs(value - time.time()) < _LATELY_S
    )


def _boards(ours: Ours, name: str, labels: Labels, value: float) -> bool:
    return (
        name == "capsman_remote_caps_info"
        and not labels.get("board")
        and ours.has(name, {**labels, "board": _ANY}, 1)
    )


def _processes(ours: Ours, name: str, labels: Labels, value: float) -> bool:
    return name == "routing_stats_processes_info" and ours.has(name, {**labels, "pid": _ANY}, value)


DIFFERENCES = (
    Difference(
        "0 for a number that the router does not have",
        "a port without a link has no rate, and a missing IPv6 menu has no number; "
        "poller gives no sample",
        _zero,
    ),
    Difference(
        "`interface_default_name` of an interface without a default name",
        "mktxp repeats the name; poller leaves the label empty",
        _own_name,
    ),
    Difference(
        "`interface_l2mtu`", "mktxp shows the MTU under this name; poller shows the L2 MTU", _mtu
    ),
    Difference(
        "`ip_pool_total_ipv6`",
        "mktxp looks for ranges, which IPv6 pools do not have, and gives 0",
        _size,
    ),
    Difference("`ipv6_neighbor`", "mktxp lists the IPv4 neighbours under this name", _neighbors),
    Difference(
        "`active_users_info` of RouterOS 6",
        "mktxp cannot read its dates, and gives the present time",
        _dates,
    ),
    Difference(
        "`board` of access points with the package wifi",
        "the property is `board-name` there; mktxp leaves the label empty",
        _boards,
    ),
    Difference("`pid` of `routing_stats_processes`", "mktxp leaves the label empty", _processes),
)


@dataclass(slots=True)
class Verdict:
    equal: int = 0
    explained: Counter[str] = field(default_factory=Counter)  # by the name of the difference
    missing: list[str] = field(default_factory=list)


def judge(theirs: Mapping[Sample, float], readings: ReadingSet) -> Verdict:
    ours, verdict = Ours(readings), Verdict()
    for sample, value in theirs.items():
        name = RENAMED.get(sample.name, sample.name)
        labels = _comparable(name, dict(sample.labels))
        numbers = {key: labels.pop(key) for key in list(labels) if (name, key) in MEASURED}
        labels = {key: text for key, text in labels.items() if (name, key) not in _LEFT_OUT}
        if ours.has(name, labels, value) and all(
            ours.has(MEASURED[name, key], _shared(labels), float(text))
            for key, text in numbers.items()
        ):
            verdict.equal += 1
            continue
        reason = next(
            (each.what for each in DIFFERENCES if each.explains(ours, name, labels, value)), None
        )
        if reason is None:
            verdict.missing.append(f"{sample.name}{labels} {value}")
        else:
            verdict.explained[reason] += 1
    return verdict


def must_be_equal(theirs: Mapping[Sample, float], readings: ReadingSet) -> Verdict:
    """Check the comparison. Raises StoreConflict with the first unexplained sample."""
    verdict = judge(theirs, readings)
    if verdict.missing or not verdict.equal:
        odd = verdict.missing[0] if verdict.missing else "nothing"
        raise errors.StoreConflict(
            f"mktxp has {odd} and poller does not ({len(verdict.missing)} differ)"
        )
    return verdict


def _equal(ours: float, theirs: float) -> bool:
    """Compare integers exactly, and fractions with a tolerance for rounding."""
    return float(ours) == theirs or (theirs % 1 != 0 and math.isclose(ours, theirs, rel_tol=1e-12))


def _shared(labels: Labels) -> Labels:
    return {"name": labels["name"]} if "name" in labels else {}


def _comparable(name: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels in a common form: flags as 1 and 0, one name per rule, no empty lease."""
    made = {key: _FLAGS.get(text, text) for key, text in labels.items()}
    if name.startswith("firewall_") and "chain" in made:
        made["name"] = _rule(labels)
    if made.get("dhcp_address") == _NO_LEASE:
        made["dhcp_address"] = ""
    if "dhcp_name" in made and made["dhcp_name"] in (
        made.get("mac_address"),
        made.get("src_address"),
    ):
        made["dhcp_name"] = ""
    return made


def _rule(labels: Labels) -> str:
    """Return the name of a rule as in mktxp."""
    more = [labels[key] for key in ("out_interface", "protocol") if labels.get(key)]
    return "| " + " | ".join([labels["chain"], labels["action"], labels["comment"], *more])


def _identity(labels: Labels, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(labels.get(name, "") for name in names)


def _infos() -> Iterator[tuple[str, tuple[str, tuple[str, ...]]]]:
    """Return for each metric the info of its table and the labels that join both."""
    for family in FAMILIES.values():
        for table in family.tables():
            for metric in table.metrics if table.info else ():
                yield metric.name, (table.info.name if table.info else "", tuple(table.labels))


_METRICS = {
    metric.name
    for family in FAMILIES.values()
    for table in family.tables()
    for metric in table.metrics
}
_INFOS = dict(_infos())
_OF_INFO = {
    info: {labels for name, labels in _INFOS.values() if name == info}
    for info, _ in _INFOS.values()
}
