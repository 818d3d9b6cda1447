"""Settings that are lists of words: comma-separated in the environment, arrays in poller.toml."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic_settings import NoDecode

Words = Annotated[tuple[str, ...], NoDecode]


def split_at_commas(value: Any) -> Any:
    """The words of the text of an environment variable; any other value as it is."""
    if not isinstance(value, str):
        return value
    words = (word.strip() for word in value.split(","))
    return tuple(word for word in words if word)
