"""Regular expressions of people: RE2, whose search time is linear in the text, as in Prometheus."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

_QUIET = re2.Options()
_QUIET.log_errors = False


@lru_cache(maxsize=1024)
def compiled(text: str) -> Any:
    """Return the compiled expression. Raises ValueError with the reason."""
    try:
        return re2.compile(text, _QUIET)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        if isinstance(reason, bytes):
            reason = reason.decode(errors="replace")
        raise ValueError(str(reason)) from None
