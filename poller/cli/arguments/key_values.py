"""`key=value` words to values of the types that a collector declares for its options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from poller import errors
from poller.service.inventory import option_texts


def pairs(words: Iterable[str]) -> dict[str, str]:
    """`key=value` words as a dictionary. Raises InvalidInput for a key that is given twice."""
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise errors.InvalidInput(
                f'"{word}" is not of the form key=value', hint="for example -o port=161"
            )
        if key in found:
            raise errors.InvalidInput(f'option "{key}" is given twice')
        found[key] = value

    return found


def option_values(model: type[BaseModel], words: Iterable[str]) -> dict[str, Any]:
    """`key=value` words as options of the model: `port=1161`, `tls=true`, `modules=[system]`."""
    return option_texts.typed(model, pairs(words))
