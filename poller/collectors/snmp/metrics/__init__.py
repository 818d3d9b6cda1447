"""From SNMP values to readings, by snmp_exporter's rules. Pure functions: no socket, no clock."""
