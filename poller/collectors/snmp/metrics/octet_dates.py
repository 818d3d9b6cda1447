"""Dates that devices send as octets, as Unix time in whole seconds, as snmp_exporter counts them."""

from __future__ import annotations

#: From NTP's epoch, 1900, to Unix'.
_NTP_EPOCH_S = 2_208_988_800
_DAYS_IN_400_YEARS = 146_097


def date_and_time(octets: object) -> float | None:
    """RFC 2579 DateAndTime: 8 octets are UTC, 11 carry a zone; anything else is no date (None).

    Fields beyond their range count on, as in Go: month 13 is next January, and all zeros are a day in the year -1.
    """
    if not isinstance(octets, bytes) or len(octets) not in (8, 11):
        return None
    offset_s = _zone(octets[8:])
    if offset_s is None:
        return None
    days = day_number(int.from_bytes(octets[:2], "big"), octets[2], octets[3])
    seconds = days * 86400 + octets[4] * 3600 + octets[5] * 60 + octets[6] + octets[7] // 10
    return float(seconds - offset_s)


def _zone(octets: bytes) -> int | None:
    """Seconds east of Greenwich; None when it is not a zone. Two digits each are enough for snmp_exporter 0.21."""
    if not octets:
        return 0
    sign = {ord("+"): 1, ord("-"): -1}.get(octets[0])
    if sign is None or max(octets[1:]) > 99:
        return None
    return sign * (octets[1] * 3600 + octets[2] * 60)


def ntp_time_stamp(octets: object) -> float | None:
    """Seconds since 1900 in the first four octets; the fraction behind them is dropped."""
    if not isinstance(octets, bytes) or len(octets) < 8:
        return None
    return float(int.from_bytes(octets[:4], "big") - _NTP_EPOCH_S)


def day_number(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar; any year, and months and days beyond their range count on."""
    year, month = year + (month - 1) // 12, (month - 1) % 12
    if month < 2:  # the year begins in March here, so that the leap day is its last
        year -= 1
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month - 2) % 12) + 2) // 5 + day - 1
    return era * _DAYS_IN_400_YEARS + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
