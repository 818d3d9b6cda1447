"""SNMP on the wire: BER codec, SNMPv3 messages and keys, request and response on one UDP socket."""
