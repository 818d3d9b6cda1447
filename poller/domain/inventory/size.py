"""Sizes as people write them: `512M`, `1.5G`, `800 MiB`, or bytes. Powers of 1024; whole bytes inside."""

from __future__ import annotations

import re

from poller import errors

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


def parse_bytes(text: str, what: str) -> int:
    """Raises InvalidInput, which names `what` was given and the right form."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise errors.InvalidInput(f'{what}: "{text}" is not a size', hint="write 512M or 1.5G")
    return round(float(found[1]) * _UNITS[found[2].lower()])
