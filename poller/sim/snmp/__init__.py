"""SNMP v1 and v2c agents: own small BER, a MIB per chassis, replies planned once and patched per request."""
