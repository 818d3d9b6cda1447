"""Makes the scene of a pass: devices of the alerts, dark and suspect sites, maintenance."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from poller.beat.alerts.device_facts import DeviceFacts
from poller.beat.alerts.level_reader import Look
from poller.bootstrap import Services
from poller.db.alerts import maintenance_rows
from poller.domain.alerts import maintenance
from poller.domain.alerts.alert import Alert, AlertState
from poller.domain.alerts.flow import recovery
from poller.domain.alerts.flow.keeping import Alerts
from poller.domain.alerts.flow.outage_scene import Reached, Scene
from poller.domain.alerts.maintenance import Covered, Maintenance
from poller.domain.failures import site_outage
from poller.domain.inventory.filter_match import DeviceFacts as Facts
from poller.settings import policies
from poller.state.board.alert_levels import AlertLevels
from poller.state.cluster import site_windows


class OutageSurroundings:
    """Reads what the decisions of a pass need. Every method raises StoreError."""

    def __init__(self, services: Services, facts: DeviceFacts) -> None:
        self._engine = services.engine
        self._redis = services.redis
        self._keys = services.keys
        self._levels = AlertLevels(services.board)
        self._limits = policies.site_limits(services.settings)
        self._facts = facts
        self._maintenances: Sequence[Maintenance] = ()

    def refresh_maintenances(self, now_ms: int) -> bool:
        """Read the maintenances again. Returns whether they are others than before."""
        before = self._maintenances
        self._maintenances = maintenance_rows.current(self._engine, now_ms)
        return list(before) != list(self._maintenances)

    def next_maintenance_ms(self, now_ms: int) -> int | None:
        """Return when a maintenance begins or ends next."""
        return maintenance.next_change_ms(self._maintenances, now_ms)

    def scene(self, look: Look, alerts: Alerts, now_ms: int) -> Scene:
        """Return the scene without the alerts that explain others."""
        ids = {alert.subject.device_id for alert in alerts.values()}
        devices = self._facts.read([each for each in ids if each is not None])
        sites = {alert.subject.site for alert in alerts.values() if _is_of_site(alert)}
        parents = {site: self._facts.site_parents(site) for site in sites | look.outages.keys()}
        return Scene(
            devices=devices,
            down=look.down.keys(),
            dark=look.outages.keys(),
            suspects=self._suspects(alerts, now_ms),
            site_parents=parents,
            maintenances=self._covered(alerts, now_ms),
        )

    def reached(self, device_ids: Collection[int]) -> dict[int, Reached]:
        """Return what the last polls of devices say."""
        targets = {each: self._facts.polled_targets([each]) for each in device_ids}
        wanted = sorted({target_id for ids in targets.values() for target_id in ids})
        statuses = self._levels.statuses(wanted)
        found = {}
        for device_id, ids in targets.items():
            found[device_id] = recovery.reached(statuses[each] for each in ids if each in statuses)
        return found

    def _suspects(self, alerts: Alerts, now_ms: int) -> set[str]:
        """Sites of pending alerts that may turn out to be dark."""
        waiting = {
            alert.subject.site
            for alert in alerts.values()
            if alert.state is AlertState.PENDING and alert.subject.site
        }
        if not waiting:
            return set()
        windows = site_windows.windows(self._redis, self._keys, now_ms)
        return {
            site
            for site in waiting & windows.keys()
            if site_outage.may_be_dark(windows[site], self._limits)
        }

    def _covered(self, alerts: Alerts, now_ms: int) -> Mapping[str, int]:
        """The maintenance of each alert that has one."""
        if not self._maintenances:
            return {}
        covered = [
            Covered(identity, alert.rule, self._filter_facts(alert))
            for identity, alert in alerts.items()
        ]
        found = maintenance.active(self._maintenances, covered, now_ms)
        return {identity: each.id for identity, each in found.items()}

    def _filter_facts(self, alert: Alert) -> Facts | None:
        subject = alert.subject
        if subject.device_id is not None:
            device = self._facts.all.get(subject.device_id)
            return device.facts(subject.target_id) if device else None
        return Facts("", site=subject.site) if subject.site else None


def _is_of_site(alert: Alert) -> bool:
    return alert.subject.device_id is None and bool(alert.subject.site)
