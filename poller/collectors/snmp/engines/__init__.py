"""SNMP engines behind one protocol, the choice between them, and the pool of open links."""
