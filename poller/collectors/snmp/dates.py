"""RFC 2579 DateAndTime octets as Unix time, whole seconds, as snmp_exporter counts them."""

from __future__ import annotations

import calendar


def date_and_time(octets: object) -> float | None:
    """8 octets are UTC, 11 carry a zone; anything else is no date (None)."""
    if not isinstance(octets, bytes) or len(octets) not in (8, 11):
        return None
    year, month, day = int.from_bytes(octets[:2], "big"), octets[2], octets[3]
    months = year * 12 + month - 1  # a month beyond December counts on, as Go's time.Date does
    year, month = divmod(months, 12)
    if not 1 <= year <= 9999:
        return None
    seconds = calendar.timegm((year, month + 1, 1, 0, 0, 0)) + (day - 1) * 86400
    seconds += octets[4] * 3600 + octets[5] * 60 + octets[6]
    offset = _zone(octets[8:])
    return None if offset is None else float(seconds - offset)


def _zone(octets: bytes) -> int | None:
    """Seconds east of Greenwich; None when it is not a zone."""
    if not octets:
        return 0
    sign = {ord("+"): 1, ord("-"): -1}.get(octets[0])
    if sign is None or octets[1] > 24 or octets[2] >= 60:
        return None
    return sign * (octets[1] * 3600 + octets[2] * 60)
