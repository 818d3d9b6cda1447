"""The firewall: rules with counters, address lists and open connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from poller.sim.device_traffic import DAY, EPOCH
from poller.sim.hardware_model import Chassis
from poller.sim.routeros.menu_tables import (
    Scene,
    Table,
    counted,
    dice,
    flag,
    moment,
    number,
    text,
    uptime,
)

Rows = Callable[[Chassis], Sequence[Any]]

_CHAINS = {
    "filter": ("input", "forward", "output"),
    "nat": ("srcnat", "dstnat"),
    "mangle": ("prerouting", "forward", "postrouting"),
    "raw": ("prerouting", "output"),
}
_ACTIONS = {
    "filter": ("accept", "drop", "fasttrack-connection", "jump"),
    "nat": ("masquerade", "dst-nat"),
    "mangle": ("mark-connection", "mark-packet"),
    "raw": ("notrack", "drop"),
}
_WHY = ("established", "from the office", "invalid", "", "web", "name service")


class Rule(NamedTuple):
    number: int
    chain: str
    action: str
    comment: str
    protocol: str
    out_interface: str
    log: bool
    disabled: bool
    rate: float  # octets per second; 0 for a rule that never matches


def _rules(menu: str, family: str) -> Rows:
    def rows(chassis: Chassis) -> Sequence[Rule]:
        luck = dice(chassis, f"{family}/{menu}")
        return [
            _rule(menu, n, chassis, luck.choice((0.0, 40.0, 900.0, 52_000.0)))
            for n in _numbers(chassis)
        ]

    return rows


def _numbers(chassis: Chassis) -> range:
    return range(1, chassis.model.setup.rules + 1)


def _rule(menu: str, n: int, chassis: Chassis, rate: float) -> Rule:
    chains, actions = _CHAINS[menu], _ACTIONS[menu]
    return Rule(
        number=n,
        chain=chains[n % len(chains)],
        action=actions[n % len(actions)],
        comment=f"{_WHY[n % len(_WHY)]} {n}" if _WHY[n % len(_WHY)] else "",
        protocol=("", "tcp", "udp", "icmp")[n % 4],
        out_interface=chassis.ports[0].name if n % 3 == 1 else "",
        log=n % 5 == 0,
        disabled=n % 11 == 10,
        rate=0.0 if n % 11 == 10 else rate,
    )


def _menu(family: str, name: str) -> Table:
    return Table(
        f"/{family}/firewall/{name}",
        _rules(name, family),
        {
            ".id": number,
            "chain": lambda rule: rule.chain,
            "action": lambda rule: rule.action,
            "protocol": lambda rule: rule.protocol or None,
            "out-interface": lambda rule: rule.out_interface or None,
            "log": lambda rule: flag(rule.log),
            "log-prefix": text(""),
            "invalid": text("false"),
            "dynamic": text("false"),
            "disabled": lambda rule: flag(rule.disabled),
            "comment": lambda rule: rule.comment or None,
        },
        {
            "bytes": lambda scene, rule: counted(scene, rule.rate, rule.number),
            "packets": lambda scene, rule: counted(scene, rule.rate / 640, rule.number),
        },
    )


# Address lists


class Listed(NamedTuple):
    number: int
    list: str
    dynamic: bool
    comment: str
    chassis: Chassis


def _listed(chassis: Chassis) -> Sequence[Listed]:
    lists = ("blocked", "blocked", "allowed", "management")
    return [
        Listed(n, lists[n % 4], n % 4 == 1, "scanner" if n % 8 == 0 else "", chassis)
        for n in range(1, chassis.model.setup.listed + 1)
    ]


def _timeout(scene: Scene, row: Listed) -> str | None:
    """Return the time left of a dynamic entry, which is renewed after a day."""
    return uptime(DAY - (scene.now + 997 * row.number) % DAY) if row.dynamic else None


def _list(family: str, addresses: str) -> Table:
    return Table(
        f"/{family}/firewall/address-list",
        _listed,
        {
            ".id": number,
            "list": lambda row: row.list,
            "address": lambda row: addresses.format(n=row.number),
            "creation-time": lambda row: moment(EPOCH + 3600 * row.number, row.chassis.version),
            "dynamic": lambda row: flag(row.dynamic),
            "disabled": lambda row: flag(row.number % 9 == 8),
            "comment": lambda row: row.comment or None,
        },
        {"timeout": _timeout},
        accepts={
            "list": True,
            "address": True,
            "comment": False,
            "timeout": False,
            "disabled": False,
        },
    )


# Connections come and go: each exists for a share of its own period.


class Tracked(NamedTuple):
    number: int
    source: str
    destination: str
    protocol: str
    period: float
    rate: float


def _tracked(chassis: Chassis) -> Sequence[Tracked]:
    luck = dice(chassis, "connection")
    made = []
    for n in range(1, chassis.model.setup.connections + 1):
        protocol = ("tcp", "udp", "tcp", "icmp")[n % 4]
        source = f"10.20.0.{n % 23 + 11}"
        target = f"198.51.100.{luck.randrange(1, 250)}"
        with_port = protocol != "icmp"
        made.append(
            Tracked(
                n,
                f"{source}:{luck.randrange(1024, 65_535)}" if with_port else source,
                f"{target}:{luck.choice((53, 80, 443, 5060))}" if with_port else target,
                protocol,
                luck.uniform(120, 900),
                luck.uniform(20, 90_000),
            )
        )
    return made


def _tracked_6(chassis: Chassis) -> Sequence[Tracked]:
    return [
        row._replace(
            source=f"2001:db8:20::{row.number % 9 + 1:x}",
            destination=f"2001:db8:99::{row.number:x}",
        )
        for row in _tracked(chassis)[::5]
    ]


def _open(scene: Scene, row: Tracked) -> bool:
    return (scene.now + 61 * row.number) % row.period < 0.8 * row.period


def _connections(family: str, rows: Rows) -> Table:
    return Table(
        f"/{family}/firewall/connection",
        rows,
        {
            ".id": number,
            "protocol": lambda row: row.protocol,
            "src-address": lambda row: row.source,
            "dst-address": lambda row: row.destination,
            "reply-src-address": lambda row: row.destination,
            "reply-dst-address": lambda row: row.source,
            "tcp-state": lambda row: "established" if row.protocol == "tcp" else None,
            "assured": text("true"),
            "seen-reply": text("true"),
            "fasttrack": lambda row: flag(row.number % 3 == 0),
        },
        {
            "timeout": lambda scene, row: uptime(
                row.period - (scene.now + 61 * row.number) % row.period
            ),
            "orig-bytes": lambda scene, row: str(
                int(row.rate * ((scene.now + 61 * row.number) % row.period))
            ),
            "repl-bytes": lambda scene, row: str(
                int(row.rate * 4 * ((scene.now + 61 * row.number) % row.period))
            ),
        },
        present=_open,
    )


TABLES = (
    *(
        _menu(family, name)
        for family in ("ip", "ipv6")
        for name in ("filter", "nat", "mangle", "raw")
    ),
    _list("ip", "203.0.113.{n}"),
    _list("ipv6", "2001:db8:bad::{n:x}"),
    _connections("ip", _tracked),
    _connections("ipv6", _tracked_6),
)
