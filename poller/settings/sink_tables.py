"""The tables of sinks and receivers, `[sink.NAME]` and `[receiver.NAME]`: their form. The sink or
receiver itself checks its options at start.

Settings are shown to people, so that a table with a secret in it is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit

from pydantic_settings import NoDecode

SinkTables = Annotated[dict[str, dict[str, Any]], NoDecode]

#: A name is part of the path of a spool, and of a URL of the API.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_SECRET = re.compile(
    r"(passw(or)?d|passphrase|pwd|secret|token|(api|access|auth|routing|private)[_-]?key"
    r"|authorization|auth|cookie|signature|sig)$",
    re.I,
)


_SINK_EXAMPLE = '{"prom": {"kind": "remote_write", "url": "http://127.0.0.1:9090/api/v1/write"}}'


def parsed(value: Any, example: str = _SINK_EXAMPLE) -> Any:
    """The tables of the JSON text of an environment variable; any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value or "{}")
    except ValueError as error:
        raise ValueError(f"it is not JSON ({error}); such as {example}") from None


def check(
    tables: Mapping[str, Mapping[str, Any]], noun: str = "sink", kind: str = "remote_write"
) -> None:
    """Raise ValueError for a bad name, a bad kind, or a secret in a table."""
    check_names(tables, noun)
    for name, table in tables.items():
        if not isinstance(table.get("kind", ""), str):
            raise ValueError(f"[{noun}.{name}] kind: it is the name of a {noun}, such as {kind}")
        for option, key, value in _entries(table):
            place = f"[{noun}.{name}] {key}"
            if table.get("kind", name) == "apprise" and "://" in str(value):
                raise ValueError(f"{place}: write the URL to a file, and name it as urls_file")
            _refuse_secret(place, option, key, value)


def check_names(tables: Mapping[str, Mapping[str, Any]], noun: str) -> None:
    """Raise ValueError for a bad name of a table."""
    for name in tables:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f'"{name}" cannot be the name of a {noun}: use up to 40 letters, digits, - and _'
            )


def _entries(table: Mapping[str, Any], option: str = "") -> Iterator[tuple[str, str, Any]]:
    """Every key and value of a table and of tables and lists in it, with the option they are of.

    Values of a table `*_files` are paths, whatever secret their key names.
    """
    for key, value in table.items():
        if key.endswith("_files"):
            continue
        if isinstance(value, Mapping):
            yield from _entries(value, option or key)
        elif isinstance(value, list):
            for each in value:
                entry = each if isinstance(each, Mapping) else {key: each}
                yield from _entries(entry, option or key)
        else:
            yield option or key, key, value


def _refuse_secret(place: str, option: str, key: str, value: Any) -> None:
    if _SECRET.search(key):
        name = f"{key.lower()}_file"
        if option == "headers":
            name = f'header_files = {{{key} = "/path"}}'
        raise ValueError(f"{place}: write the secret to a file, and name it as {name}")
    if key == "headers":
        raise ValueError(f'{place}: it is a table: {{name = "text"}}')
    if isinstance(value, str) and "://" in value and _has_secret(value):
        raise ValueError(
            f"{place}: a URL with a password or a token; give the URL without it, and name a file "
            "with it as password_file (and username) or bearer_token_file"
        )


def _has_secret(url: str) -> bool:
    """Whether a URL has a password, or a parameter whose name is that of a secret."""
    try:
        parts = urlsplit(url)
        query = f"{parts.query}&{parts.fragment}"
        names = [name for name, _ in parse_qsl(query, keep_blank_values=True)]
        return parts.password is not None or any(map(_SECRET.search, names))
    except ValueError:
        return False
