"""The tables that a partial poll could not read, from the message of its run."""

from __future__ import annotations

import re

#: A part as the snmp collector names it: `if_mib 1.3.6.1.2.1.2`, `system scalars`.
_PART = re.compile(r"([A-Za-z0-9_.-]+) (scalars|(?:filter )?[0-9]+(?:\.[0-9]+)+)")


def parse(message: str) -> list[tuple[str, str]]:
    """Return module and table of each failed part; a part of another form is a table alone.

    The message is `part, part: error; part: error`, cut at its end.
    """
    found: dict[tuple[str, str], None] = {}
    for piece in message.split("; "):
        parts, colon, _ = piece.partition(": ")
        if not colon:
            continue
        for part in parts.split(", "):
            match = _PART.fullmatch(part)
            if match:
                found[match[1], match[2]] = None
    return list(found) or [("", "")]
