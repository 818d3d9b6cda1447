"""`poller up --sink`: names, kinds and addresses become settings of the roles."""

from __future__ import annotations

import json
from typing import Any

import pytest

from poller import errors
from poller.cli.up import chosen_sinks
from poller.settings import Settings

WRITE = "http://127.0.0.1:9090/api/v1/write"


def chosen(*words: str, **settings: Any) -> tuple[list[str], dict[str, Any]]:
    found = chosen_sinks.variables(words, Settings(**settings))
    return found["POLLER_SINKS"].split(","), json.loads(found["POLLER_SINK"])


def test_a_kind_is_added_to_the_sinks_of_the_settings() -> None:
    """Without options it needs no table."""
    assert chosen("stream", "stream") == (["sql", "stream"], {})


def test_an_address_makes_a_table_and_a_second_one_a_second_sink() -> None:
    """Several sinks of one kind are possible."""
    names, tables = chosen(f"remote_write={WRITE}", "remote_write=http://two")
    assert names == ["sql", "remote_write", "remote_write-2"]
    assert tables["remote_write"] == {"kind": "remote_write", "url": WRITE}
    assert tables["remote_write-2"]["url"] == "http://two"


def test_a_name_of_the_settings_brings_its_table() -> None:
    """Other tables stay as they are."""
    table = {"kind": "remote_write", "url": WRITE}
    names, tables = chosen("prom", sinks=("sql",), sink={"prom": table, "other": {}})
    assert names == ["sql", "prom"]
    assert tables == {"prom": table, "other": {}}


def test_a_bus_takes_a_list_of_servers() -> None:
    """Commas separate them."""
    _, tables = chosen("nats=nats://one:4222,nats://two:4222")
    assert tables["nats"]["servers"] == ["nats://one:4222", "nats://two:4222"]


@pytest.mark.parametrize(
    ("word", "message", "hint"),
    [
        ("steam", 'no sink named "steam"', "did you mean stream?"),
        ("stream=http://x", '"stream" takes no address', "--sink stream"),
        ("prom=http://x", '"prom" has its address in poller.toml', "--sink prom"),
    ],
)
def test_a_wrong_word_is_refused_before_anything_starts(word: str, message: str, hint: str) -> None:
    """The hint has the word that is meant."""
    with pytest.raises(errors.InvalidInput) as caught:
        chosen(word, sink={"prom": {"kind": "remote_write"}})
    assert message in caught.value.message
    assert hint in caught.value.hint
