"""A small world for the decisions on alerts: devices, parents, and a clock that a test moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from poller.domain.alerts.alert import Alert, Subject
from poller.domain.alerts.flow import keeping
from poller.domain.alerts.flow.alert_change import AlertChange
from poller.domain.alerts.flow.keeping import Kept, Pass, Past
from poller.domain.alerts.flow.known_device import KnownDevice, KnownTarget
from poller.domain.alerts.flow.outage_scene import Reached, Scene
from poller.domain.alerts.flow.sign import Sign, Signs, still_holding
from poller.domain.alerts.rule import (
    DeviceUnreachable,
    NoData,
    Rule,
    SiteDark,
    TargetFailing,
    Threshold,
)

UNREACHABLE = Rule("device-unreachable", DeviceUnreachable(), id=1)
DARK = Rule("site-dark", SiteDark(), id=2)
FAILING = Rule("target-failing", TargetFailing(), id=3)
MISSING = Rule("no-data", NoData(), id=4)
LOAD = Rule("load", Threshold("load", above=5.0), id=5)
RULES = (UNREACHABLE, DARK, FAILING, MISSING, LOAD)


def device(number: int, site: str = "ams", parent: int | None = None) -> KnownDevice:
    """Return a device with one target of the number + 1000."""
    target = KnownTarget(number + 1000, "snmp", "snmp", 60_000, enabled=True, created_ms=0)
    return KnownDevice(
        number, f"r{number}", "192.0.2.1", site, (), enabled=True, parent_id=parent,
        targets={target.id: target},
    )  # fmt: skip


@dataclass
class World:
    """Runs passes as the keeper does. `at` is the present instant in ms."""

    devices: dict[int, KnownDevice]
    rules: dict[str, Rule] = field(default_factory=lambda: {rule.name: rule for rule in RULES})
    at: int = 1_000_000
    open: dict[str, Alert] = field(default_factory=dict)
    past: Past = field(default_factory=Past)
    holding: set[str] = field(default_factory=set)
    down: dict[int, int] = field(default_factory=dict)
    dark: dict[str, int] = field(default_factory=dict)
    reached: dict[int, Reached] = field(default_factory=dict)
    suspects: set[str] = field(default_factory=set)
    site_parents: dict[str, tuple[int, ...]] = field(default_factory=dict)
    maintenances: dict[str, int] = field(default_factory=dict)
    history: list[AlertChange] = field(default_factory=list)
    told: list[str] = field(default_factory=list)  # texts of alerts when they became loud
    ended: list[Alert] = field(default_factory=list)
    number: int = 0
    last: Kept = field(default_factory=Kept)

    def sign(self, rule: Rule, subject: Subject, since_ms: int | None = None) -> Sign:
        at_ms = self.at if since_ms is None else since_ms
        return Sign(rule=rule, subject=subject, since_ms=at_ms, seen_ms=at_ms)

    def outages(self) -> list[Sign]:
        """The signs of the devices that are down, and of dark sites."""
        down = [
            self.sign(UNREACHABLE, self._subject(each), since_ms)
            for each, since_ms in self.down.items()
        ]
        dark = [self.sign(DARK, Subject(site=site), at) for site, at in self.dark.items()]
        return [*down, *dark]

    def _subject(self, number: int) -> Subject:
        return Subject(device_id=number, device=f"r{number}", site=self.devices[number].site)

    def look(
        self,
        *more: Sign,
        gone: Iterable[str] = (),
        full: bool = True,
        ended: dict[str, str] | None = None,
    ) -> Kept:
        """Make one pass with the outages of the world and these signs."""
        holding = {sign.identity: sign for sign in (*self.outages(), *more)}
        signs = Signs(holding, dict.fromkeys(gone, self.at), ended or {}, is_full=full)
        signs = signs.by_clock(self.at)
        bare = Scene(
            devices=self.devices,
            down=self.down.keys(),
            dark=self.dark.keys(),
            suspects=self.suspects,
            site_parents=self.site_parents,
            reached=self.reached,
            maintenances=self.maintenances,
        )
        stored = {**self.open, **self._numbered(keeping.begun(self.open, signs))}
        alerts = keeping.followed(stored, signs, self.at)
        scene = keeping.with_causes(bare, alerts, self.rules, self.past)
        for identity in keeping.not_worth_beginning(
            {each: stored[each] for each in stored.keys() - self.open.keys()},
            scene, self.rules, self.at,
        ):  # fmt: skip
            del stored[identity], alerts[identity]
        holding_now = still_holding(self.holding, signs)
        this = Pass(self.rules, scene, signs, holding_now, self.past, self.at)
        kept = this.keep(stored, alerts)
        self._follow(kept, holding_now)
        return kept

    def pass_time(self, seconds: float, *more: Sign, step_s: float = 1.0) -> None:
        """Let time go by, with a look at every step."""
        end = self.at + round(seconds * 1000)
        while self.at < end:
            self.at = min(end, self.at + round(step_s * 1000))
            self.look(*more)

    def _numbered(self, new: dict[str, Alert]) -> dict[str, Alert]:
        found = {}
        for identity, alert in new.items():
            self.number += 1
            found[identity] = replace(alert, id=self.number)
        return found

    def _follow(self, kept: Kept, holding: set[str]) -> None:
        before = self.open
        self.open = kept.open
        self.holding = holding & kept.open.keys()
        self.past = keeping.remembered(self.past, kept, self.rules, self.at)
        self.history += kept.changes
        self.ended += kept.over
        self.last = kept
        for identity, alert in kept.open.items():
            was_loud = identity in before and _is_loud(before[identity])
            if _is_loud(alert) and not was_loud:
                self.told.append(identity)

    def alert(self, identity: str) -> Alert:
        return self.open[identity]


def _is_loud(alert: Alert) -> bool:
    return bool(alert.fired_ms) and not alert.suppressed_by


def of_device(number: int, rule: Rule = UNREACHABLE) -> str:
    """Return the identity of a device's alert."""
    return Subject(device_id=number).identity(rule.name)


def of_target(number: int, rule: Rule, series: str = "") -> str:
    """Return the identity of an alert of a device's only target."""
    return target_subject(number, series).identity(rule.name)


def of_site(site: str) -> str:
    """Return the identity of a site's alert."""
    return Subject(site=site).identity(DARK.name)


def target_subject(number: int, series: str = "") -> Subject:
    return Subject(
        device_id=number, target_id=number + 1000, device=f"r{number}", series=series, site="ams"
    )
