"""SNMP engines behind one protocol: gufo, the exact engine, and the pool of their open links."""
