"""A search as people type it, as a filter: words without a key are parts of names or addresses.

`state:failing west` is `state:failing name:'*west*'`. The result is the one language of filters.
"""

from __future__ import annotations

import re
import shlex

from poller import errors
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter

#: A word that is an IPv4 address, the start of one, or a network.
_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){1,3}\.?(/\d{1,2})?")
_WILD = frozenset("*?")


def as_filter(text: str) -> TargetFilter:
    """Return the filter of a search. Raises InvalidInput for a key or value that does not exist."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise errors.InvalidInput(
            f"the search {text!r} cannot be read: {str(error).lower()}",
            hint="close the quote, or leave it out",
        ) from None
    return target_filter.parse(" ".join(shlex.quote(_keyed(word)) for word in words))


def toggled(wanted: TargetFilter, field: str, value: str) -> TargetFilter:
    """Return the filter with one value of a field more, or without it if it is there."""
    values = tuple(map(str, getattr(wanted, field)))
    kept = tuple(each for each in values if each != value)
    changed = kept if value in values else (*values, value)
    key = next(key for key, name in target_filter.FIELDS.items() if name == field)
    others = {
        other: getattr(wanted, name)
        for other, name in target_filter.FIELDS.items()
        if other != key and getattr(wanted, name)
    }
    return target_filter.checked({**others, key: changed} if changed else others)


def _keyed(word: str) -> str:
    """The word with its key: `west` is `name:*west*`, `10.1.` is `address:10.1.*`."""
    key, colon, _ = word.partition(":")
    if colon and key.isalpha():
        return word
    if _ADDRESS.fullmatch(word):
        is_whole = word.count(".") == 3 and not word.endswith(".")
        return f"address:{word}" if is_whole else f"address:{word.rstrip('.')}.*"
    return f"name:{word}" if _WILD & set(word) else f"name:*{word}*"
