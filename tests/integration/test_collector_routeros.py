"""The RouterOS collector reads simulated routers and survives any peer on a TCP port."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import logging
import os
import ssl
import time
from collections.abc import Iterator

import pytest

from poller.collectors.credentials import Login
from poller.domain.failures.outcome import Outcome, Result
from poller.sim import fleet
from poller.sim.fleet import Fault, SimDevice
from poller.sim.routeros import router_users
from poller.sim.sim_process import simulated
from tests.integration.scripted_router import (
    DONE,
    LOGIN,
    PASSWORD,
    Sentence,
    encode,
    healthy,
    poll,
    poll_script,
    scripted,
)
from tests.unit.collectors.polls import by_series, outcome, polled

if os.environ.get("CI") != "true":
    pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

from librouteros import exceptions

from poller.collectors.routeros import RouterOsCollector, librouteros_errors

SIM_LOGIN = Login(username=fleet.USERNAME, password=fleet.PASSWORD)


def test_a_poll_logs_in_and_prints_what_its_families_need() -> None:
    result, heard = poll(healthy)
    assert result.result is Result.OK, result.message
    assert heard[0] == [b"/login", b"=name=admin", b"=password=" + PASSWORD.encode()]
    assert [sentence[0] for sentence in heard[1:]] == [
        b"/system/resource/print",
        b"/interface/print",
    ]
    assert heard[2][1].startswith(b"=.proplist=name,")
    found = by_series(result)
    assert found["routeros_system_uptime", ()] == 26 * 3600
    assert found["routeros_interface_rx_byte", (("name", "ether1"),)] == 123
    assert found["routeros_interface_rx_byte", (("name", "zażółć"),)] == 123
    assert found["routeros_interface_rx_byte", (("name", "007"),)] == 2**64 - 1
    info = [dict(labels) for name, labels in found if name == "routeros_interface_info"]
    assert {"name": "007", "comment": "café"}.items() <= info[2].items()


def test_families_can_be_chosen() -> None:
    result, heard = poll(healthy, families="resource")
    assert result.result is Result.OK
    assert [sentence[0] for sentence in heard] == [b"/login", b"/system/resource/print"]


def test_a_family_with_an_interval_of_its_own_keeps_out_of_the_polls_in_between() -> None:
    async def run() -> list[list[Sentence]]:
        memory: dict[str, object] = {}
        async with scripted(healthy) as script:
            for _ in range(2):
                result = await poll_script(
                    script, memory=memory, families="resource,interfaces", every="interfaces=1h"
                )
                assert result.result is Result.OK, result.message
                assert (
                    by_series(result)["routeros_family_present", (("family", "interfaces"),)] == 1
                )
            return script.heard

    commands = [sentence[0] for sentence in asyncio.run(run())]
    assert [commands.count(name) for name in (b"/system/resource/print", b"/interface/print")] == [
        2,
        1,
    ]


def test_a_poll_counts_its_sent_sentences() -> None:
    async def run() -> int | None:
        async with scripted(healthy) as script:
            both = {"port": script.port, "tls": False, "families": "resource,interfaces"}
            drained = await polled(RouterOsCollector(), "127.0.0.1", LOGIN, **both)
            return drained.traffic.sent if drained.traffic else None

    assert asyncio.run(run()) == 3  # a login and two menus


# Logging in


def old(sentence: Sentence) -> list[Sentence]:
    """Before 6.43: takes a name and a password for a request for a challenge."""
    challenge = bytes.fromhex("ebddd18303a54111e2dea05a92ab46b4")
    if sentence[0] != b"/login":
        return healthy(sentence)
    proof = next((word for word in sentence if word.startswith(b"=response=")), None)
    if proof is None:
        return [[b"!done", b"=ret=" + challenge.hex().encode()]]
    right = hashlib.md5(b"\0" + PASSWORD.encode() + challenge).hexdigest()
    return (
        [DONE]
        if proof == b"=response=00" + right.encode()
        else [[b"!trap", b"=message=cannot log in"], DONE]
    )


def test_an_old_router_gets_its_challenge_answered() -> None:
    """Before 6.43 a login is two sentences, and the proof is a digest."""
    result, heard = poll(old)
    assert result.result is Result.OK, result.message
    assert heard[1][:2] == [b"/login", b"=name=admin"]


def test_an_old_router_that_does_not_like_the_proof_refuses_the_login() -> None:
    def wrong(sentence: Sentence) -> list[Sentence]:
        return old(
            [b"=response=00aa" if word.startswith(b"=response=") else word for word in sentence]
        )

    result, _ = poll(wrong)
    assert (result.result, result.error_code) == (Result.FAILED, "auth_failed")
    assert "cannot log in" in result.message


@pytest.mark.parametrize(("challenge", "code"), [(b"", "auth_failed"), (b"xyz", "protocol_error")])
def test_a_router_that_asks_for_proofs_without_end_is_left(challenge: bytes, code: str) -> None:
    result, heard = poll(lambda sentence: [[b"!done", b"=ret=" + challenge]])
    assert (result.result, result.error_code) == (Result.FAILED, code)
    assert {sentence[0] for sentence in heard} == {b"/login"}


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ([[b"!trap", b"=message=invalid user name or password (6)"], DONE], "auth_failed"),
        ([[b"!trap", b"=message=password s3cret: pw=" + PASSWORD.encode()], DONE], "auth_failed"),
        ([[b"!trap", b"=message=std failure: timeout (13)"], DONE], "protocol_error"),
        ([[b"!fatal", b"too many sessions"]], "protocol_error"),
        (b"", "unreachable"),
    ],
)
def test_a_refused_login_has_the_reason_and_no_secret(
    said: list[Sentence] | bytes, code: str
) -> None:
    """The router rejects the user, repeats the password, or has a failure of its own."""
    result, heard = poll(lambda sentence: said)
    assert (result.result, result.error_code) == (Result.FAILED, code), result.message
    assert PASSWORD not in result.message
    assert len(heard) == 1


@pytest.mark.parametrize(
    ("over_tls", "text"), [(False, "api-ssl, leave tls=false out"), (True, "see in /ip/service")]
)
def test_a_router_that_hangs_up_at_the_login_may_expect_tls(over_tls: bool, text: str) -> None:
    """The plain API at the port of api-ssl, or a service that listens to others only."""
    hint = librouteros_errors.of_login(
        exceptions.ConnectionClosed("it hung up"), "core", over_tls
    ).hint
    assert text in hint
    assert ("tls=false" in hint) is not over_tls


def test_a_router_without_a_certificate_hints_at_the_commands_that_make_one() -> None:
    """OpenSSL refuses anonymous Diffie-Hellman, or the router hangs up."""
    for error in (ssl.SSLError("no cipher match"), ConnectionResetError()):
        made = librouteros_errors.of_connecting(error, "core", True)
        assert "the router has no certificate" in made.cause
        assert "/ip/service/set api-ssl certificate=api" in made.hint


def test_a_router_that_forgets_the_login_at_once_is_not_retried() -> None:
    result, heard = poll(
        lambda sentence: [DONE] if sentence[0] == b"/login" else [[b"!fatal", b"not logged in"]]
    )
    assert (result.result, result.error_code) == (Result.FAILED, "protocol_error")
    assert "not logged in" in result.message
    assert len(heard) == 2


def test_a_password_that_is_no_text_is_refused_and_not_shown() -> None:
    odd = Login(username="admin", password="s3cret-\ud800")
    result = asyncio.run(_polled_with(odd))
    assert result.error_code == "auth_failed"
    assert "ud800" not in result.message


async def _polled_with(credential: Login) -> Outcome:
    async with scripted(healthy) as script:
        return (
            await polled(RouterOsCollector(), "127.0.0.1", credential, port=script.port, tls=False)
        ).outcome


# Replies of a router


NO_SUCH = [
    [[b"!trap", b"=category=0", b"=message=no such command prefix"]],
    [[b"!trap", b"=category=0"]],
    [[b"!trap", b"=message=no such command or directory (bfd)"]],
]


@pytest.mark.parametrize("trap", NO_SUCH)
def test_a_menu_that_is_not_there_is_no_error_and_can_be_seen(trap: list[Sentence]) -> None:
    """The other menus are read on the same session."""
    result, heard = poll(
        lambda sentence: (
            [*trap, DONE] if sentence[0].startswith(b"/system/resource") else healthy(sentence)
        )
    )
    assert result.result is Result.OK, result.message
    found = by_series(result)
    assert found["routeros_family_present", (("family", "resource"),)] == 0
    assert found["routeros_family_present", (("family", "interfaces"),)] == 1
    assert ("routeros_interface_rx_byte", (("name", "ether1"),)) in found
    assert [sentence[0] for sentence in heard].count(b"/login") == 1


def test_a_router_without_any_of_the_families_is_unsupported() -> None:
    result, _ = poll(lambda sentence: [DONE] if sentence[0] == b"/login" else [*NO_SUCH[0], DONE])
    assert (result.result, result.error_code) == (Result.FAILED, "unsupported")
    assert "nothing of resource, interfaces" in result.message


@pytest.mark.parametrize(
    ("trap", "code"),
    [
        ([[b"!trap", b"=message=oops", b"=weird=1"]], "protocol_error"),
        ([[b"!trap"]], "protocol_error"),
        ([[b"!trap", b"=category=0", b"=message=no such item"]], "protocol_error"),
        ([[b"!trap", b"=message=a"], [b"!trap", b"=message=b"]], "protocol_error"),
        (
            [[b"!re", b"=name=half"], [b"!trap", b"=message=interrupted", b"=category=2"]],
            "protocol_error",
        ),
        ([[b"!trap", b"=message=not enough permissions (9)"]], "auth_failed"),
        ([[b"!trap", b"=message=std failure: not allowed (9)"]], "auth_failed"),
    ],
)
def test_a_trap_of_any_shape_ends_its_command_and_no_other(trap: list[Sentence], code: str) -> None:
    """The next menu is read on the same session.

    Traps have a category or none, a message or none.
    """
    result, heard = poll(
        lambda sentence: (
            [*trap, DONE] if sentence[0].startswith(b"/system/resource") else healthy(sentence)
        )
    )
    assert (result.result, result.error_code) == (Result.PARTIAL, code), result.message
    assert ("routeros_interface_rx_byte", (("name", "ether1"),)) in by_series(result)
    assert [sentence[0] for sentence in heard].count(b"/login") == 1


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ([[b"!fatal", b"too many commands"]], "protocol_error"),
        ([[b"!fatal"]], "protocol_error"),
        ([[b"!re", b"nonsense"], DONE], "protocol_error"),
        ([[b"!re", b"?name=x"], DONE], "protocol_error"),
        ([[b"!re", b".tag=77"], DONE], "protocol_error"),
        ([[b"done"]], "protocol_error"),
        (b"\xf8\xff\xff", "protocol_error"),
        (b"\xf0\x10\0\0\0", "protocol_error"),
        (b"\xef\xff\xff\xff", "protocol_error"),
        (b"", "unreachable"),
        (b"\x05!done", "timeout"),
        (None, "timeout"),
    ],
)
def test_a_wrong_reply_to_a_menu_is_a_partial_poll(
    said: list[Sentence] | bytes | None, code: str
) -> None:
    """After a good login a menu gets rubbish, another tag, a closed connection or silence."""
    result, _ = poll(
        lambda sentence: said if sentence[0].startswith(b"/interface") else healthy(sentence),
        timeout_s=0.5,
    )
    assert (result.result, result.error_code) == (Result.PARTIAL, code), result.message
    assert ("routeros_system_uptime", ()) in by_series(result)


@pytest.mark.parametrize("said", [None, [[b"!trap", b"=message=not enough permissions (9)"], DONE]])
def test_cached_series_do_not_make_a_failed_poll_partial(
    said: list[Sentence] | None,
) -> None:
    """A router falls silent, or revokes the permissions of the login, after a good poll."""

    async def run() -> list[Result]:
        memory: dict[str, object] = {}
        async with scripted(healthy) as script:
            first = await poll_script(script, memory=memory)
            script.answer = lambda sentence: [DONE] if sentence[0] == b"/login" else said
            return [first.result, (await poll_script(script, timeout_s=0.5, memory=memory)).result]

    assert asyncio.run(run()) == [Result.OK, Result.FAILED]


def test_an_empty_answer_empty_sentences_and_new_reply_words_are_fine() -> None:
    """RouterOS 7.18 sends !empty. Empty sentences and unknown reply words are ignored."""

    def empty(sentence: Sentence) -> list[Sentence]:
        if sentence[0] == b"/interface/print":
            return [[], [], [b"!empty"], [], [b"!later", b"=eta=5"], DONE]
        return healthy(sentence)

    result, _ = poll(empty)
    assert result.result is Result.OK, result.message


def test_the_answer_to_another_command_is_not_taken() -> None:
    """A router repeats every reply a little later: the tag reveals it."""

    def twice(sentence: Sentence) -> list[Sentence] | bytes:
        if sentence[0] != b"/interface/print":
            return healthy(sentence)
        late = encode(b"!re", b"=name=wrong", b"=rx-byte=1", b".tag=2") + encode(
            b"!done", b".tag=2"
        )
        return late + encode(b"!re", b"=name=right", b".tag=3") + encode(b"!done", b".tag=3")

    result, _ = poll(twice)
    assert (result.result, result.error_code) == (Result.PARTIAL, "protocol_error"), result.message
    assert "answers another command" in result.message
    assert not [labels for _, labels in by_series(result) if ("name", "wrong") in labels]


def test_silence_ends_with_the_poll_and_names_the_step() -> None:
    started = time.monotonic()
    result, _ = poll(lambda sentence: None, timeout_s=0.3)
    assert time.monotonic() - started < 1.5
    assert result.error_code == "timeout"
    assert "did not answer the login" in result.message


def test_a_closed_port_is_unreachable() -> None:
    result = outcome(RouterOsCollector(), "127.0.0.1", LOGIN, port=1, tls=False)
    assert (result.result, result.error_code) == (Result.FAILED, "unreachable")
    assert "127.0.0.1 port 1 refused the connection" in result.message


def test_a_missing_login_is_named() -> None:
    assert "kind login" in outcome(RouterOsCollector(), "127.0.0.1", None).message


@pytest.mark.parametrize("said", [b"\xef\xff\xff\xff", b"\0" * 3_000_000])
def test_an_endless_answer_is_refused(said: bytes) -> None:
    """A word of a quarter gigabyte, or an endless row, ends the poll at once."""
    result, _ = poll(lambda sentence: said if sentence[0] == b"/login" else None, timeout_s=10)
    assert result.error_code == "protocol_error"
    assert "longer than" in result.message or "more than" in result.message


def test_no_secret_in_any_log(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """The library logs every word at DEBUG.

    Our protocol does not, nor does asyncio's debug mode.
    """
    caplog.set_level(logging.DEBUG)
    logging.getLogger("librouteros").setLevel(logging.DEBUG)
    logging.getLogger("librouteros").disabled = False

    async def run() -> list[Outcome]:
        asyncio.get_running_loop().set_debug(True)
        outcomes = []
        for answer in (
            healthy,
            old,
            lambda s: b"",
            lambda s: b"\xf8",
            lambda s: [[b"!trap"], DONE],
            lambda s: None,
        ):
            async with scripted(answer) as script:
                outcomes.append(await poll_script(script, timeout_s=0.5))
        return outcomes

    outcomes = asyncio.run(run(), debug=True)
    assert [result.result for result in outcomes] == [Result.OK] * 2 + [Result.FAILED] * 4
    written = caplog.text + "".join(capfd.readouterr()) + repr(outcomes)
    assert "s3cret" not in written
    assert [record for record in caplog.records if record.name.startswith("librouteros")] == []


# The simulated fleet


@pytest.fixture(scope="module")
def fleet_of_routers() -> list[SimDevice]:
    pool = fleet.devices(20, snmp_share=0, faulty_share=0, slow_seconds=0.2)
    faulty = [
        dataclasses.replace(d, fault=f) for d, f in zip(pool[10:], fleet.FAULTS, strict=False)
    ]
    return [*pool[:10], *faulty]


@pytest.fixture(scope="module")
def sim_port(fleet_of_routers: list[SimDevice]) -> Iterator[int]:
    with simulated(fleet_of_routers) as ports:
        yield ports.routeros


def test_every_simulated_router_gives_its_resources_and_interfaces(
    fleet_of_routers: list[SimDevice], sim_port: int
) -> None:
    async def run() -> list[Outcome]:
        collector = RouterOsCollector()
        good = [device for device in fleet_of_routers if device.fault is Fault.NONE]
        polls = [
            polled(collector, device.address, SIM_LOGIN, tls=False, port=sim_port)
            for device in good
        ]
        return [drained.outcome for drained in await asyncio.gather(*polls)]

    for result in asyncio.run(run()):
        assert result.result is Result.OK, result.message
        names = {name for name, _ in by_series(result)}
        assert {
            "routeros_system_uptime",
            "routeros_interface_rx_byte",
            "routeros_interface_info",
        } <= names


def test_a_login_that_may_not_monitor_gets_the_missing_policy_named(
    fleet_of_routers: list[SimDevice], sim_port: int
) -> None:
    """The permitted menus are read."""
    limited = Login(username=router_users.LIMITED, password=fleet.PASSWORD)
    result = outcome(
        RouterOsCollector(), fleet_of_routers[0].address, limited, port=sim_port, tls=False
    )
    assert (result.result, result.error_code) == (Result.PARTIAL, "auth_failed")
    assert result.message.startswith("ethernet: ")
    assert "needs the policies api, read, test" in result.message
    assert ("routeros_system_uptime", ()) in by_series(result)


EXPECTED = {
    Fault.DOWN: {"timeout"},
    Fault.SLOW: {""},
    Fault.LOSSY: {"", "timeout", "unreachable"},
    Fault.WRONG_CREDENTIALS: {"auth_failed"},
    Fault.GARBAGE: {"timeout", "protocol_error", "unreachable"},
    Fault.REBOOT: {"", "unreachable"},
}


@pytest.mark.parametrize("fault", list(EXPECTED))
def test_a_faulty_router_fails_as_its_fault_says(
    fault: Fault, fleet_of_routers: list[SimDevice], sim_port: int
) -> None:
    device = next(device for device in fleet_of_routers if device.fault is fault)
    result = outcome(
        RouterOsCollector(), device.address, SIM_LOGIN, tls=False, port=sim_port, timeout_s=2
    )
    assert result.error_code in EXPECTED[fault], result.message
