"""Dates that devices send as octets, in whole Unix seconds, computed as snmp_exporter does.

Pure functions; dates that devices send as text are in `text_dates`.
"""

from __future__ import annotations

#: Seconds from NTP's epoch (1900) to the Unix epoch.
_NTP_EPOCH_S = 2_208_988_800
_DAYS_IN_400_YEARS = 146_097
#: Days from 0000-03-01 to 1970-01-01.
_UNIX_EPOCH_DAYS = 719_468


def date_and_time(octets: object) -> float | None:
    """Read an RFC 2579 DateAndTime: 8 octets are UTC, 11 carry a zone; None for other octets.

    Fields out of range carry over, as in Go: month 13 is the next January, and all zeros are a
    day in the year -1.
    """
    if not isinstance(octets, bytes) or len(octets) not in (8, 11):
        return None

    offset_s = _zone_offset_s(octets[8:])
    if offset_s is None:
        return None

    year = int.from_bytes(octets[:2], "big")
    days = day_number(year, octets[2], octets[3])
    seconds = octets[4] * 3600 + octets[5] * 60 + octets[6]
    tenths = octets[7]
    seconds += days * 86400 + tenths // 10
    return float(seconds - offset_s)


def _zone_offset_s(octets: bytes) -> int | None:
    """Return the seconds east of UTC; None for octets that are no zone.

    Hours and minutes up to 99 are valid, as in snmp_exporter 0.21.
    """
    if not octets:
        return 0

    sign = {ord("+"): 1, ord("-"): -1}.get(octets[0])
    if sign is None or max(octets[1:]) > 99:
        return None
    return sign * (octets[1] * 3600 + octets[2] * 60)


def ntp_time_stamp(octets: object) -> float | None:
    """Read the seconds since 1900 in the first four octets; the fraction after them is dropped."""
    if not isinstance(octets, bytes) or len(octets) < 8:
        return None
    return float(int.from_bytes(octets[:4], "big") - _NTP_EPOCH_S)


def day_number(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01 in the Gregorian calendar, for any year.

    Months and days out of range carry over.
    """
    year += (month - 1) // 12
    month = (month - 1) % 12
    if month < 2:  # years are counted from March, so that the leap day is the last day
        year -= 1

    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month - 2) % 12) + 2) // 5 + day - 1
    leap_days = year_of_era // 4 - year_of_era // 100
    day_of_era = year_of_era * 365 + leap_days + day_of_year
    return era * _DAYS_IN_400_YEARS + day_of_era - _UNIX_EPOCH_DAYS
