"""A simulated fleet on loopback: SNMP agents and RouterOS API servers with believable counters and faults.

It serves the demo, the tests and the benchmarks, and is never reachable from outside 127.0.0.0/8.
"""
