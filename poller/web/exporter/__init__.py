"""The HTTP side of scrapes: `/snmp`, `/probe` and the paths beside them."""
