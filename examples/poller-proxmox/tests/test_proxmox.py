"""Both collectors against a fake server: readings, certificates, tokens and failures."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any

import pytest
from fake import GIB, TOKEN, FakeServer
from poller_proxmox import ProxmoxBackup, ProxmoxVe
from poller_proxmox.options import VeOptions
from pydantic import ValidationError

from poller import testing
from poller.collectors.api import Poll
from poller.collectors.credentials import Token
from poller.collectors.poll_runner import run_poll
from poller.collectors.sessions import Sessions
from poller.domain.failures.outcome import Outcome, Result

CREDENTIAL = Token.from_text(TOKEN)

Labels = tuple[tuple[str, str], ...]
GARBAGE_COLLECTION: Labels = (("id", "main"), ("node", "pbs"), ("task", "garbage_collection"))


def poll(
    collector: Any, server: FakeServer, credential: Token = CREDENTIAL, **options: Any
) -> Outcome:
    options = {"port": server.port, "fingerprint": server.fingerprint, **options}
    return asyncio.run(testing.collect(collector, "127.0.0.1", credential, **options))


def values(outcome: Outcome) -> dict[tuple[str, Labels], float]:
    """Return the values of an outcome by metric name and labels."""
    assert outcome.readings is not None, outcome
    series = outcome.readings.series.series
    return {
        (each.name, each.labels): value
        for each, value in zip(series, outcome.readings.values, strict=True)
    }


def test_a_cluster_is_read_with_three_requests(cluster: FakeServer) -> None:
    """One of the three requests returns nodes, guests and storages."""
    outcome = poll(ProxmoxVe(), cluster)
    assert outcome.result is Result.OK, outcome
    assert len(cluster.requested) == 3

    readings = values(outcome)
    assert readings["proxmox_cluster_quorate", (("cluster", "lab"),)] == 1
    assert readings["proxmox_node_up", (("node", "pve1"),)] == 1
    assert readings["proxmox_node_memory_bytes", (("node", "pve1"),)] == 21 * GIB
    assert readings["proxmox_node_up", (("node", "pve2"),)] == 0
    assert ("proxmox_node_memory_bytes", (("node", "pve2"),)) not in readings
    assert readings["proxmox_guest_up", (("vmid", "100"),)] == 1
    assert readings["proxmox_guest_network_receive_bytes", (("vmid", "100"),)] == 123_456_789
    assert readings["proxmox_guest_up", (("vmid", "101"),)] == 0
    assert ("proxmox_guest_up", (("vmid", "9000"),)) not in readings  # a template
    assert readings["proxmox_storage_up", (("node", "pve2"), ("storage", "pbs"))] == 0

    info = next(
        dict(labels)
        for name, labels in readings
        if name == "proxmox_guest_info" and ("vmid", "100") in labels
    )
    assert info == {
        "vmid": "100",
        "name": "db1",
        "node": "pve1",
        "type": "qemu",
        "pool": "prod",
        "tags": "db;linux",
    }


def test_the_last_ended_backup_is_reported(cluster: FakeServer) -> None:
    """Running tasks, older tasks and tasks of other types have no readings."""
    readings = values(poll(ProxmoxVe(), cluster, parts="tasks"))
    succeeded = (("id", "100"), ("node", "pve1"), ("task", "vzdump"))
    failed = (("id", "101"), ("node", "pve1"), ("task", "vzdump"))
    assert readings["proxmox_task_end_timestamp_seconds", succeeded] == 1_700_000_300
    assert readings["proxmox_task_duration_seconds", succeeded] == 300
    assert readings["proxmox_task_ok", succeeded] == 1
    assert readings["proxmox_task_ok", failed] == 0
    assert {dict(labels)["task"] for _, labels in readings} == {"vzdump"}


def test_a_backup_server_is_read(backup_server: FakeServer) -> None:
    """A datastore that cannot be opened is down, and the others are read."""
    outcome = poll(ProxmoxBackup(), backup_server)
    assert outcome.result is Result.OK, outcome

    readings = values(outcome)
    main = (("datastore", "main"),)
    usb = (("datastore", "usb"),)
    assert readings["proxmox_datastore_up", main] == 1
    assert readings["proxmox_datastore_up", usb] == 0
    assert readings["proxmox_datastore_bytes", main] == 1500 * GIB
    assert readings["proxmox_datastore_indexed_bytes", main] == 9800 * GIB
    assert readings["proxmox_backup_memory_used_bytes", ()] == 2 * GIB

    group = (("datastore", "main"), ("id", "100"), ("type", "vm"))
    assert readings["proxmox_backup_last_timestamp_seconds", group] == 1_700_000_290
    assert readings["proxmox_task_ok", GARBAGE_COLLECTION] == 1


def test_one_connection_serves_several_polls(cluster: FakeServer) -> None:
    """The second poll uses the open connection of the first, as in a worker."""

    async def poll_twice() -> list[Outcome]:
        collector = ProxmoxVe()
        sessions = Sessions()
        poll = Poll(
            target_id=1,
            device="pve1",
            address="127.0.0.1",
            options=VeOptions(port=cluster.port, fingerprint=cluster.fingerprint),
            credential=CREDENTIAL,
            deadline=asyncio.get_running_loop().time() + 5,
            sessions=sessions,
        )
        outcomes = [await run_poll(collector, poll) for _ in range(2)]
        await sessions.close()
        return outcomes

    outcomes = asyncio.run(poll_twice())
    assert [outcome.result for outcome in outcomes] == [Result.OK, Result.OK]
    assert len(cluster.requested) == 6
    assert cluster.connections == 1


@pytest.mark.parametrize("trust", ["fingerprint", "ca_file", "insecure"])
def test_each_kind_of_trust_works(cluster: FakeServer, trust: str) -> None:
    accepted = {
        "fingerprint": cluster.fingerprint,
        "ca_file": str(cluster.ca_file),
        "insecure": True,
    }
    options = {"fingerprint": "", trust: accepted[trust]}
    assert poll(ProxmoxVe(), cluster, **options).result is Result.OK


@pytest.mark.parametrize("options", [{"fingerprint": "00" * 32}, {"fingerprint": ""}])
def test_an_untrusted_server_never_receives_the_token(
    cluster: FakeServer, options: dict[str, Any]
) -> None:
    """The certificate is not the pinned one, or no known CA signed it."""
    outcome = poll(ProxmoxVe(), cluster, **options)
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "protocol_error")
    assert "certificate" in outcome.message
    assert "('" not in outcome.message, "the message shows a Python tuple"
    assert cluster.requested == []


def test_a_wrong_token_is_auth_failed_and_stays_secret(
    cluster: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the message nor a log line of any level contains the secret."""
    caplog.set_level(logging.DEBUG)
    secret = "00000000-1111-2222-3333-444444444444"
    outcome = poll(ProxmoxVe(), cluster, Token.from_text(f"monitor@pve!poller={secret}"))
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "auth_failed")
    assert len(cluster.requested) == 1
    assert secret not in outcome.message + caplog.text


def test_a_forbidden_part_fails_alone(cluster: FakeServer) -> None:
    cluster.responses["/cluster/tasks"] = 403
    outcome = poll(ProxmoxVe(), cluster)
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "auth_failed")
    assert outcome.message.startswith("tasks: the token may not read /cluster/tasks")
    assert ("proxmox_node_up", (("node", "pve1"),)) in values(outcome)


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (b"<html>", "protocol_error"),
        (b'{"data": "x"}', "protocol_error"),
        (b'{"data": [1]}', "protocol_error"),
        (b"[" * 100_000, "protocol_error"),
        (500, "protocol_error"),
        (501, "unsupported"),
    ],
)
def test_a_malformed_response_is_a_failed_outcome(
    cluster: FakeServer, response: Any, code: str
) -> None:
    cluster.responses["/cluster/resources"] = response
    outcome = poll(ProxmoxVe(), cluster, parts=["nodes"])
    assert (outcome.result, outcome.error_code) == (Result.FAILED, code)


@pytest.mark.parametrize(
    "response", [400, 500, 595, b"<html>", b'{"data": [{"backup-id": "\\ud800"}]}']
)
def test_a_datastore_that_cannot_be_listed_fails_alone(
    backup_server: FakeServer, response: Any
) -> None:
    """The later parts of the poll are read."""
    backup_server.responses["/admin/datastore/main/groups"] = response
    outcome = poll(ProxmoxBackup(), backup_server)
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "protocol_error")
    assert outcome.message.startswith("backups of main: ")
    assert ("proxmox_task_ok", GARBAGE_COLLECTION) in values(outcome)


@pytest.mark.parametrize(
    "reason",
    [
        lambda header: f"denied {header}",
        lambda header: f"denied {header.upper()}",
        lambda header: f"{header}\0",
    ],
    ids=["as sent", "in capitals", "malformed HTTP"],
)
def test_a_token_that_the_server_repeats_is_masked(
    backup_server: FakeServer, cluster: FakeServer, reason: Callable[[str], str]
) -> None:
    """The message contains the secret neither as typed nor as sent in the header."""
    secret = TOKEN.partition("=")[2]
    for server, collector, part in (
        (cluster, ProxmoxVe(), "nodes"),
        (backup_server, ProxmoxBackup(), "node"),
    ):
        server.reason = reason
        server.responses = dict.fromkeys(server.responses, 500)
        outcome = poll(collector, server, parts=[part])
        assert (outcome.result, outcome.error_code) == (Result.FAILED, "protocol_error")
        assert "***" in outcome.message
        assert secret not in outcome.message.lower()


def test_half_a_surrogate_pair_is_a_protocol_error(cluster: FakeServer) -> None:
    """A whole pair is a character."""
    cluster.responses["/cluster/resources"] = b'{"data": [{"type": "node", "node": "a\\ud800"}]}'
    outcome = poll(ProxmoxVe(), cluster, parts=["nodes"])
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "protocol_error")
    cluster.responses["/cluster/resources"] = (
        b'{"data": [{"type": "node", "node": "\\ud83d\\ude00"}]}'
    )
    assert values(poll(ProxmoxVe(), cluster, parts=["nodes"])) == {
        ("proxmox_node_up", (("node", "\U0001f600"),)): 0
    }


def test_values_that_are_no_numbers_have_no_readings(cluster: FakeServer) -> None:
    """A number in a string is a number."""
    cluster.responses["/cluster/resources"] = [
        {
            "type": "node",
            "node": "a",
            "status": "online",
            "cpu": "0.5",
            "mem": None,
            "maxmem": "much",
            "uptime": 1e400,
        }
    ]
    readings = values(poll(ProxmoxVe(), cluster, parts=["nodes"]))
    assert readings == {
        ("proxmox_node_up", (("node", "a"),)): 1,
        ("proxmox_node_cpu_ratio", (("node", "a"),)): 0.5,
    }


def test_a_closed_port_is_unreachable(cluster: FakeServer) -> None:
    with socket.socket() as bound:  # bound, but not listening
        bound.bind(("127.0.0.1", 0))
        outcome = poll(ProxmoxVe(), cluster, port=bound.getsockname()[1])
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "unreachable")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fingerprint": "AA:BB"}, "a SHA-256 fingerprint has 32 bytes"),
        ({"insecure": True, "fingerprint": "00" * 32}, "contradict each other"),
        ({"parts": "nodes,gests"}, "parts"),
        ({"parts": ""}, "at least 1"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        VeOptions(**options)
