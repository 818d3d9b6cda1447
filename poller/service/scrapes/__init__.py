"""Scrapes of `/snmp` and `/probe`: answered from the last poll, or by a poll of their own."""
