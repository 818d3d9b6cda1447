"""SNMP agents with a small BER of their own and a MIB per chassis. Reply plans are cached."""
