"""Module files (`snmp.yml`): parse them, choose the modules and the login of a target.

Nothing here opens a socket or makes a reading.
"""
