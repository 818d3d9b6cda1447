"""One family is refused, slow or without end: the result of the poll and of the other families."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from poller.domain.failures.outcome import Outcome, Result
from tests.integration.scripted_router import (
    DONE,
    LOGIN,
    Answer,
    Script,
    Sentence,
    encode,
    healthy,
    scripted,
)
from tests.unit.collectors.polls import by_series, polled

if os.environ.get("CI") != "true":
    pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

from poller.collectors.routeros import RouterOsCollector, api_client, sentence_parser

REFUSED: list[Sentence] = [[b"!trap", b"=message=not enough permissions (9)"], DONE]


async def polls(script: Script, times: int, timeout_s: float = 5, **options: Any) -> list[Outcome]:
    """Run polls that share one memory."""
    memory: dict[str, Any] = {}
    ask = {"port": script.port, "tls": False, "timeout_s": timeout_s, "memory": memory, **options}
    return [
        (await polled(RouterOsCollector(), "127.0.0.1", LOGIN, **ask)).outcome for _ in range(times)
    ]


def run(answer: Answer, times: int, **options: Any) -> tuple[list[Outcome], Script]:
    async def main() -> tuple[list[Outcome], Script]:
        async with scripted(answer) as script:
            return await polls(script, times, **options), script

    return asyncio.run(main())


def metrics(result: Outcome) -> set[str]:
    return {name for name, _ in by_series(result)}


def guarded(sentence: Sentence) -> list[Sentence]:
    """Answer as a router that refuses access to its certificates."""
    if sentence[0] == b"/certificate/print":
        return REFUSED
    return [[b"!done", b"=ret=3"]] if sentence[0] == b"/ip/route/print" else healthy(sentence)


def test_a_refusal_when_nothing_else_is_due_is_no_failed_login() -> None:
    """Routes are read every five minutes: the second poll reads only the certificates."""
    results, script = run(
        guarded, 2, families=["routes", "certificates"], every={"certificates": 0}
    )
    assert [(each.result, each.error_code) for each in results] == [
        (Result.PARTIAL, "auth_failed")
    ] * 2
    assert [words[0] for words in script.heard].count(b"/certificate/print") == 2
    assert metrics(results[1]) == {"routeros_family_present"}


def test_a_refusal_is_reported_in_polls_that_skip_the_family() -> None:
    """A target with a refused family is never reported as well in between."""
    results, script = run(guarded, 3, families=["resource", "certificates"])
    assert [(each.result, each.error_code) for each in results] == [
        (Result.PARTIAL, "auth_failed")
    ] * 3
    assert [words[0] for words in script.heard].count(b"/certificate/print") == 1
    assert "routeros_system_cpu_load" in metrics(results[2])


@pytest.mark.parametrize("families", [["certificates"], ["resource", "interfaces"]])
def test_a_router_that_refuses_every_family_has_failed(families: list[str]) -> None:
    """Earlier readings do not count, nor does the reply to the identity."""
    allowed = 2

    def forbidding(sentence: Sentence) -> list[Sentence]:
        nonlocal allowed
        if sentence[0] in (b"/login", b"/system/identity/print"):
            return healthy(sentence)
        allowed -= 1
        return healthy(sentence) if allowed >= 0 and families != ["certificates"] else REFUSED

    *_, last = run(forbidding, 2, families=families)[0]
    assert (last.result, last.error_code) == (Result.FAILED, "auth_failed")


def test_a_menu_that_never_ends_does_not_block_the_others() -> None:
    """The next poll reads the endless menu last, and has all the rest."""

    def slow(sentence: Sentence) -> list[Sentence] | None:
        return None if sentence[0] == b"/system/resource/print" else healthy(sentence)

    first, second = run(slow, 2, timeout_s=0.4, families=["resource", "interfaces"])[0]
    assert (first.result, first.error_code) == (Result.FAILED, "timeout")
    assert (second.result, second.error_code) == (Result.PARTIAL, "timeout")
    assert "routeros_interface_rx_byte" in metrics(second)


@pytest.mark.alone
def test_readings_of_a_large_router_are_stored_when_the_time_is_up() -> None:
    """Eight thousand rows need more time than the usual reserve before the deadline."""

    def large(sentence: Sentence) -> list[Sentence] | None:
        if sentence[0] == b"/interface/print":
            return [
                *(
                    [b"!re", b"=name=e%d" % n, b"=rx-byte=%d" % n, b"=running=true"]
                    for n in range(8_000)
                ),
                DONE,
            ]
        return None if sentence[0] == b"/ip/route/print" else healthy(sentence)

    [result] = run(large, 1, timeout_s=8, families=["interfaces", "routes"])[0]
    assert (result.result, result.error_code) == (Result.PARTIAL, "timeout"), result.message
    assert result.samples > 16_000


def test_the_replies_of_a_poll_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit covers all replies of a poll, which stay in memory until its end; the next poll
    starts at zero.
    """
    monkeypatch.setattr(sentence_parser, "MAX_WORDS", 1_500)
    rows = [[b"!re", b"=name=x%d" % n] for n in range(250)]  # four words each, with tag and end

    def talkative(sentence: Sentence) -> list[Sentence]:
        return [*rows, DONE] if sentence[0].endswith(b"/print") else healthy(sentence)

    results, _ = run(talkative, 2, families=["interfaces", "identity", "resource"])
    assert [(each.result, each.error_code) for each in results] == [
        (Result.PARTIAL, "protocol_error")
    ] * 2
    assert "more than 1,500 words in one poll" in results[0].message


def test_a_long_reply_leaves_the_loop_to_other_polls() -> None:
    """40,000 rows arrive at once; the loop turns at least once for each 512 of them."""
    rows = encode(b"!re", b"=a=b") * 40_000 + encode(b"!done")

    def answer(sentence: Sentence) -> bytes:
        is_login = sentence[0] == b"/login"
        return encode(b"!done") if is_login else rows

    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def read() -> int:
        nonlocal turns
        async with scripted(answer) as script:
            client = await api_client.connect("127.0.0.1", script.port, None)
            await client.log_in("admin", "secret")
            turning = asyncio.create_task(turn())
            await asyncio.sleep(0)
            turns = 0
            read = await client.print("/ip/route")
            turning.cancel()
            await client.close(politely=False)
            return len(read)

    assert asyncio.run(read()) == 40_000
    assert turns > 40_000 // 512
