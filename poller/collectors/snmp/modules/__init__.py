"""Module files (`snmp.yml`): parse them, cache them, and choose the modules and login of a target.

Nothing here opens a socket or makes a reading.
"""
