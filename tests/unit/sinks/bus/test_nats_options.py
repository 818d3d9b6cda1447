"""The options of the `nats` sink: mistakes are said at the start, not at the first poll."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic
import pytest

from poller import errors
from poller.sinks.bus.nats.nats_options import NatsOptions


@pytest.mark.parametrize(
    "server", ["nats://host:port", "nats://host:99999", "nats://host:0", "http://host", "host:4222"]
)
def test_a_server_that_is_no_address_is_refused(server: str) -> None:
    """A port that is none would be found by the first write only."""
    with pytest.raises(pydantic.ValidationError, match="servers"):
        NatsOptions(servers=(server,))


@pytest.mark.parametrize("option", ["credentials_file", "nkey_file", "password_file"])
def test_a_login_file_that_is_missing_is_named(tmp_path: Path, option: str) -> None:
    """The sink asks for its login when it is made, before any server is connected."""
    options: dict[str, Any] = {option: tmp_path / "missing"}
    if option == "password_file":
        options["username"] = "me"
    with pytest.raises(errors.InvalidSetting, match=f'sink "bus": {option}'):
        NatsOptions(**options).login("bus")
