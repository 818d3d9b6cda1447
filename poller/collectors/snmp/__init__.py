"""The SNMP collector. `mapping` says what a reading is, `walker` and the engines fetch values."""

from poller.collectors.snmp.collector import SnmpCollector

__all__ = ["SnmpCollector"]
