"""Serves a recorded walk through snmpd: `pass_persist .1 python3 serve.py FILE`.

Lines are `OID|TAG|VALUE`. TAG is the BER tag of the type, with an x when VALUE is hexadecimal, as
in snmpsim's .snmprec files: 2 integer, 4 octets, 6 OID, 64 IpAddress, 65 Counter32, 66 Gauge32,
67 TimeTicks, 68 Opaque, 70 Counter64. The script needs nothing but Python, because snmpd starts it
with its own environment.
"""

import bisect
import sys

TYPES = {2: "integer", 6: "objectid", 65: "counter", 66: "gauge", 67: "timeticks", 70: "counter64"}


def rows_of(path):
    """Return (OID as numbers, type, text) in SNMP's order."""
    found = {}
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            line = line.rstrip("\n")
            if line and not line.startswith("#"):
                oid, tag, value = line.split("|", 2)
                found[tuple(map(int, oid.strip(".").split(".")))] = passed(tag, value)
    return sorted((oid, *row) for oid, row in found.items())


def passed(tag, value):
    """Return type and text as snmpd takes them."""
    octets = bytes.fromhex(value) if tag.endswith("x") else value.encode()
    number = int(tag.rstrip("x"))
    if number in (4, 68):
        return ("octet" if number == 4 else "opaque"), " ".join(f"{octet:02x}" for octet in octets)
    if number == 64:
        return "ipaddress", ".".join(map(str, octets)) if tag.endswith("x") else value
    return TYPES[number], value


def answer(rows, order, command, oid):
    at = bisect.bisect_right(order, oid) if command == "getnext" else bisect.bisect_left(order, oid)
    if at == len(rows) or (command == "get" and order[at] != oid):
        return "NONE"
    found, kind, text = rows[at]
    return f".{'.'.join(map(str, found))}\n{kind}\n{text}"


def main(path):
    rows = rows_of(path)
    order = [row[0] for row in rows]
    for line in sys.stdin:
        command = line.strip()
        if command == "PING":
            said = "PONG"
        elif command in ("get", "getnext"):
            said = answer(
                rows,
                order,
                command,
                tuple(map(int, sys.stdin.readline().strip().strip(".").split("."))),
            )
        else:
            said = "not-writable"
        print(said, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
