"""Both collectors against a fake server: what they read, what they trust, and what becomes of trouble."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from fake import GIB, TOKEN, Fake
from poller_proxmox import ProxmoxBackup, ProxmoxVe
from poller_proxmox.options import VeOptions
from pydantic import ValidationError

from poller import testing
from poller.collectors.credentials import Token
from poller.domain.failures.outcome import Outcome, Result

CREDENTIAL = Token.from_text(TOKEN)


def poll(collector: Any, server: Fake, credential: Token = CREDENTIAL, **options: Any) -> Outcome:
    given = {"port": server.port, "fingerprint": server.fingerprint, **options}
    return asyncio.run(testing.collect(collector, "127.0.0.1", credential, **given))


def values(outcome: Outcome) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    assert outcome.readings is not None, outcome
    series = outcome.readings.series.series
    return {
        (each.name, each.labels): value
        for each, value in zip(series, outcome.readings.values, strict=True)
    }


def test_a_cluster_is_read_with_three_requests(cluster: Fake) -> None:
    """Nodes, guests and storages come with one of them."""
    outcome = poll(ProxmoxVe(), cluster)
    assert outcome.result is Result.OK, outcome
    assert len(cluster.asked) == 3
    found = values(outcome)
    assert found["proxmox_cluster_quorate", (("cluster", "lab"),)] == 1
    assert found["proxmox_node_up", (("node", "pve1"),)] == 1
    assert found["proxmox_node_up", (("node", "pve2"),)] == 0
    assert ("proxmox_node_memory_bytes", (("node", "pve2"),)) not in found
    assert found["proxmox_node_memory_bytes", (("node", "pve1"),)] == 21 * GIB
    assert found["proxmox_guest_up", (("vmid", "100"),)] == 1
    assert found["proxmox_guest_up", (("vmid", "101"),)] == 0
    assert ("proxmox_guest_up", (("vmid", "9000"),)) not in found  # a template
    assert found["proxmox_guest_network_receive_bytes", (("vmid", "100"),)] == 123_456_789
    assert found["proxmox_storage_up", (("node", "pve2"), ("storage", "pbs"))] == 0
    info = next(
        dict(labels)
        for name, labels in found
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


def test_the_last_backup_that_ended_is_told(cluster: Fake) -> None:
    """Not the one that still runs, nor an older one, nor other kinds of task."""
    found = values(poll(ProxmoxVe(), cluster, parts="tasks"))
    good, bad = (
        (("id", "100"), ("node", "pve1"), ("task", "vzdump")),
        (("id", "101"), ("node", "pve1"), ("task", "vzdump")),
    )
    assert found["proxmox_task_end_timestamp_seconds", good] == 1_700_000_300
    assert (found["proxmox_task_ok", good], found["proxmox_task_ok", bad]) == (1, 0)
    assert found["proxmox_task_duration_seconds", good] == 300
    assert {dict(labels)["task"] for _, labels in found} == {"vzdump"}


def test_a_backup_server_is_read(backup_server: Fake) -> None:
    """A datastore that cannot be opened is down, and the others are read."""
    outcome = poll(ProxmoxBackup(), backup_server)
    assert outcome.result is Result.OK, outcome
    found = values(outcome)
    main = (("datastore", "main"),)
    assert (
        found["proxmox_datastore_up", main],
        found["proxmox_datastore_up", (("datastore", "usb"),)],
    ) == (1, 0)
    assert found["proxmox_datastore_bytes", main] == 1500 * GIB
    assert found["proxmox_datastore_indexed_bytes", main] == 9800 * GIB
    assert found["proxmox_backup_memory_used_bytes", ()] == 2 * GIB
    group = (("datastore", "main"), ("id", "100"), ("type", "vm"))
    assert found["proxmox_backup_last_timestamp_seconds", group] == 1_700_000_290
    task = (("id", "main"), ("node", "pbs"), ("task", "garbage_collection"))
    assert found["proxmox_task_ok", task] == 1


def test_one_connection_serves_several_polls(cluster: Fake) -> None:
    """As a worker keeps them: TLS is spoken once."""
    from poller.collectors.api import Poll
    from poller.collectors.poll_runner import run_poll
    from poller.collectors.sessions import Sessions

    async def twice() -> list[Outcome]:
        sessions, collector = Sessions(), ProxmoxVe()
        options = VeOptions(port=cluster.port, fingerprint=cluster.fingerprint)
        deadline = asyncio.get_running_loop().time() + 5
        given = (1, "pve1", "127.0.0.1", options, CREDENTIAL, deadline, {}, sessions)
        outcomes = [await run_poll(collector, Poll(*given)) for _ in range(2)]
        await sessions.close()
        return outcomes

    outcomes = asyncio.run(twice())
    assert [outcome.result for outcome in outcomes] == [Result.OK, Result.OK]
    assert (len(cluster.asked), cluster.connections) == (6, 1)


@pytest.mark.parametrize("trust", ["fingerprint", "ca_file", "insecure"])
def test_three_ways_to_trust(cluster: Fake, trust: str) -> None:
    given: dict[str, Any] = {
        "fingerprint": "",
        trust: {"insecure": True}.get(trust, str(getattr(cluster, trust, ""))),
    }
    assert poll(ProxmoxVe(), cluster, **given).result is Result.OK


@pytest.mark.parametrize("options", [{"fingerprint": "00" * 32}, {"fingerprint": ""}])
def test_a_server_that_is_not_trusted_never_sees_the_token(
    cluster: Fake, options: dict[str, Any]
) -> None:
    """Another certificate than the pinned one, and one that no CA signed."""
    outcome = poll(ProxmoxVe(), cluster, **options)
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "protocol_error")
    assert "certificate" in outcome.message
    assert "('" not in outcome.message, "a text, not what Python shows of one"
    assert cluster.asked == []


def test_a_wrong_token_is_auth_failed_and_stays_secret(
    cluster: Fake, caplog: pytest.LogCaptureFixture
) -> None:
    """In the message, and in every log at every level."""
    caplog.set_level(logging.DEBUG)
    secret = "00000000-1111-2222-3333-444444444444"
    outcome = poll(ProxmoxVe(), cluster, Token.from_text(f"monitor@pve!poller={secret}"))
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "auth_failed")
    assert len(cluster.asked) == 1
    assert secret not in outcome.message + caplog.text


def test_a_part_that_is_forbidden_costs_only_itself(cluster: Fake) -> None:
    cluster.answers["/cluster/tasks"] = 403
    outcome = poll(ProxmoxVe(), cluster)
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "auth_failed")
    assert outcome.message.startswith("tasks: our token may not read /cluster/tasks")
    assert ("proxmox_node_up", (("node", "pve1"),)) in values(outcome)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"<html>", "protocol_error"),
        (b'{"data": "x"}', "protocol_error"),
        (b'{"data": [1]}', "protocol_error"),
        (b"[" * 100_000, "protocol_error"),
        (500, "protocol_error"),
        (501, "unsupported"),
    ],
)
def test_nonsense_is_an_outcome(cluster: Fake, answer: Any, code: str) -> None:
    cluster.answers["/cluster/resources"] = answer
    outcome = poll(ProxmoxVe(), cluster, parts=["nodes"])
    assert (outcome.result, outcome.error_code) == (Result.FAILED, code)


@pytest.mark.parametrize(
    "answer", [400, 500, 595, b"<html>", b'{"data": [{"backup-id": "\\ud800"}]}']
)
def test_a_datastore_that_cannot_be_listed_costs_only_itself(
    backup_server: Fake, answer: Any
) -> None:
    """What comes after it is asked for."""
    backup_server.answers["/admin/datastore/main/groups"] = answer
    outcome = poll(ProxmoxBackup(), backup_server)
    assert (outcome.result, outcome.error_code) == (Result.PARTIAL, "protocol_error")
    assert outcome.message.startswith("backups of main: ")
    assert (
        "proxmox_task_ok",
        (("id", "main"), ("node", "pbs"), ("task", "garbage_collection")),
    ) in values(outcome)


@pytest.mark.parametrize(
    "reason",
    [
        lambda header: f"denied {header}",
        lambda header: f"denied {header.upper()}",
        lambda header: f"{header}\0",
    ],
    ids=["as sent", "in capitals", "no HTTP"],
)
def test_a_server_that_repeats_the_token_is_not_quoted(
    backup_server: Fake, cluster: Fake, reason: Callable[[str], str]
) -> None:
    """Neither in the form in which it was typed nor in that of the header."""
    secret = TOKEN.partition("=")[2]
    for server, collector, part in (
        (cluster, ProxmoxVe(), "nodes"),
        (backup_server, ProxmoxBackup(), "node"),
    ):
        server.reason = reason
        server.answers = dict.fromkeys(server.answers, 500)
        outcome = poll(collector, server, parts=[part])
        assert (outcome.result, outcome.error_code) == (Result.FAILED, "protocol_error")
        assert "***" in outcome.message
        assert secret not in outcome.message.lower()


def test_half_a_character_is_no_text(cluster: Fake) -> None:
    """The other escapes are."""
    cluster.answers["/cluster/resources"] = b'{"data": [{"type": "node", "node": "a\\ud800"}]}'
    outcome = poll(ProxmoxVe(), cluster, parts=["nodes"])
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "protocol_error")
    cluster.answers["/cluster/resources"] = (
        b'{"data": [{"type": "node", "node": "\\ud83d\\ude00"}]}'
    )
    assert values(poll(ProxmoxVe(), cluster, parts=["nodes"])) == {
        ("proxmox_node_up", (("node", "\U0001f600"),)): 0
    }


def test_odd_values_are_left_out(cluster: Fake) -> None:
    """A node may lack numbers, or send texts in their place."""
    cluster.answers["/cluster/resources"] = [
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
    found = values(poll(ProxmoxVe(), cluster, parts=["nodes"]))
    assert found == {
        ("proxmox_node_up", (("node", "a"),)): 1,
        ("proxmox_node_cpu_ratio", (("node", "a"),)): 0.5,
    }


def test_nobody_there_is_unreachable(cluster: Fake, tmp_path: Any) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        outcome = poll(ProxmoxVe(), cluster, port=taken.getsockname()[1])
    assert (outcome.result, outcome.error_code) == (Result.FAILED, "unreachable")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"fingerprint": "AA:BB"}, "a SHA-256 fingerprint has 32 bytes"),
        ({"insecure": True, "fingerprint": "00" * 32}, "contradict each other"),
        ({"parts": "nodes,gests"}, "parts"),
        ({"parts": ""}, "at least 1"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        VeOptions(**options)
