"""A simulated fleet on loopback: SNMP agents and RouterOS API servers with plausible counters.

The demo, the tests and the benchmarks use it. It is never reachable from outside 127.0.0.0/8.
"""
