"""LTE interfaces: `monitor` in version 7, `info` with a single number in version 6."""

from __future__ import annotations

from poller.sim.hardware_model import Chassis, Feature, Kind
from poller.sim.routeros.menu_tables import (
    Condition,
    Fixed,
    Live,
    Table,
    Watch,
    having,
    since_boot,
    text,
    uptime,
)
from poller.sim.routeros.menus import interface_menus

_FIXED: dict[str, Fixed] = {
    "pin-status": text("ok"),
    "registration-status": text("registered"),
    "functionality": text("full"),
    "manufacturer": text("Example Modems"),
    "model": text("EX-LTE6"),
    "revision": text("1.4"),
    "current-operator": text("Example Mobile"),
    "current-cellid": text("26712345"),
    "access-technology": text("LTE"),
    "subscriber-number": text("+10000000000"),
    "earfcn": text("1300 (band 3, bandwidth 20Mhz)"),
}
_LIVE: dict[str, Live] = {
    "session-uptime": lambda scene, port: uptime(since_boot(scene, 0.2)),
    "rssi": lambda scene, port: str(-61 - int(scene.now / 20) % 7),
    "rsrp": lambda scene, port: str(-92 - int(scene.now / 30) % 9),
    "rsrq": lambda scene, port: str(-9 - int(scene.now / 45) % 4),
    "sinr": lambda scene, port: str(11 + int(scene.now / 25) % 8),
    "cqi": lambda scene, port: str(9 + int(scene.now / 15) % 5),
}
_NEW_RADIO: dict[str, Live] = {
    "nr-rsrp": lambda scene, port: str(-101 - int(scene.now / 35) % 6),
    "nr-rsrq": lambda scene, port: str(-11 - int(scene.now / 50) % 3),
    "nr-sinr": lambda scene, port: str(7 + int(scene.now / 40) % 6),
}


def _menu(where: Condition, verb: str, watch: Watch) -> Table:
    return Table(
        "/interface/lte",
        interface_menus.ports(Kind.LTE),
        {
            **interface_menus.COMMON,
            "default-name": lambda port: port.name,
            "apn-profiles": text("default"),
        },
        {"mac-address": interface_menus.address},
        where=where,
        watches={verb: watch},
    )


def _old(chassis: Chassis) -> bool:
    return having(Feature.LTE)(chassis) and chassis.version < (7,)


TABLES = (
    _menu(having(Feature.LTE, 7), "monitor", Watch(fixed=_FIXED, live={**_LIVE, **_NEW_RADIO})),
    _menu(_old, "info", Watch(fixed=_FIXED, live=_LIVE, items="number")),
)
