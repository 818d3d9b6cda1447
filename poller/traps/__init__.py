"""SNMP notifications: a trap from a known device causes an immediate poll, and nothing else."""
