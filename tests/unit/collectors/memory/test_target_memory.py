"""The memory that an SNMP target takes in a worker between its polls."""

from __future__ import annotations

import tracemalloc

from poller.collectors.snmp.engines.engine_protocol import Row
from poller.collectors.snmp.metrics.reading_plan import Shapes
from poller.collectors.snmp.modules import module_catalog
from tests.unit.collectors.snmp_device import Device

IF_MIB = module_catalog.select(("if_mib",))
DEVICES = 40


def rows(number: int) -> list[Row]:
    """The rows of a device with four ports whose names and MAC addresses are its own."""
    names = {index: f"{number}/{index}" for index in range(1, 5)}
    return list(Device(names, clock=1100.0 + number).values().items())


def polled(number: int) -> Shapes:
    shapes = Shapes()
    for _ in range(2):
        readings, _ = shapes.read(rows(number), IF_MIB, True)
        assert len(readings.values) > 140
    return shapes


def test_a_device_with_four_ports_takes_less_than_twelve_kilobytes() -> None:
    """Like devices share names, kinds and positions, even if every label text is their own."""
    kept = [polled(number) for number in range(5)]
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept += [polled(number) for number in range(5, 5 + DEVICES)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / DEVICES < 12_000
