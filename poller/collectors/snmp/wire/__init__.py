"""SNMP on the wire: octets, datagrams, sockets and SNMPv3 security. Nothing here knows modules or metrics."""
