"""Checks of the values that functions of a job return: scopes, plans and results.

The functions are plugin code and may return anything. Each check raises Refused with the fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from poller.jobs.api import Result, Scope

#: Scopes of one job, and plans that a hook may name for one scope.
MOST_SCOPES = 50_000
MOST_PLANS = 10_000
#: Characters of a scope's kind and of its id, as the ledger has them.
LONGEST_KIND = 50
LONGEST_ID = 200
#: The largest number that the ledger can store.
MOST_ROWS = 2**63 - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Refused(ValueError):
    """A value that a function of a job must not return. The text says why."""


def scopes(found: Any) -> list[Scope]:
    """The scopes that `scopes` listed, each once."""
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise Refused(f"it returned {type(found).__name__} and must list pairs (kind, id)")
    listed = dict.fromkeys(_scope(each) for each in islice(found, MOST_SCOPES + 1))
    if len(listed) > MOST_SCOPES:
        raise Refused(f"it lists more than {MOST_SCOPES:,} scopes")
    return list(listed)


def _scope(value: Any) -> Scope:
    is_pair = isinstance(value, tuple | list) and len(value) == 2
    if not is_pair or not all(isinstance(part, str) for part in value):
        raise Refused(f"it lists {value!r:.80}, which is no pair (kind, id) of texts")
    kind, scope_id = str(value[0]), str(value[1])
    for part, longest in ((kind, LONGEST_KIND), (scope_id, LONGEST_ID)):
        if not 0 < len(part) <= longest:
            raise Refused(f"it lists {value!r:.80}: a part has 1 to {longest} characters")
        if not part.isprintable():
            raise Refused(f"it lists {value!r:.80}: a part has characters that are not text")
    return Scope(kind, scope_id)


def plans_ms(found: Any) -> list[int]:
    """The plans that a `plans` hook named, in UTC milliseconds and in its order."""
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise Refused(f"it returned {type(found).__name__} and must list datetimes")
    instants = []
    for each in islice(found, MOST_PLANS):
        if not isinstance(each, datetime) or each.tzinfo is None:
            raise Refused(f"it names {each!r:.80}, which is no datetime with a time zone")
        if each < _EPOCH:
            raise Refused(f"it names {each.isoformat()}, which is before 1970")
        instants.append((each - _EPOCH) // timedelta(milliseconds=1))
    return instants


def result(value: Any) -> Result:
    """The result of a handler. None and a mapping of details are results, too."""
    if value is None:
        return Result()
    if isinstance(value, Mapping):
        return Result(details=dict(value))
    if not isinstance(value, Result):
        raise Refused(f"it returned {type(value).__name__}")
    rows, details = value.rows_affected, value.details
    if type(rows) is not int or not 0 <= rows <= MOST_ROWS:
        raise Refused(f"rows_affected is {rows!r:.40} and must be a whole number from 0")
    if not isinstance(details, Mapping):
        raise Refused(f"details is {type(details).__name__} and must be a mapping")
    return Result(rows, dict(details))
