"""The session pool: a session serves one poll at a time and is closed after any error."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Hashable
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from poller import errors
from poller.collectors import poll_runner, sessions
from poller.collectors.api import API_VERSION, Credential, Options, Poll, SessionLost, Yielded
from poller.collectors.credentials import Token
from poller.collectors.sessions import Sessions
from poller.domain.scheduling.session_limits import Limits, Rules

SECRET = Token(token="first-secret")


class Line:
    """A session of the test's device."""

    def __init__(self, number: int, device: str) -> None:
        self.number, self.device = number, device
        self.users = 0
        self.ended: str = ""


class Keeper:
    """Opens lines, and remembers them."""

    name: ClassVar[str] = "keeper"
    api_version: ClassVar[int] = API_VERSION
    Options: ClassVar[type[Options]] = Options
    credentials: ClassVar[tuple[type[Credential], ...]] = ()

    def __init__(self, open_s: float = 0) -> None:
        self.lines: list[Line] = []
        self.opened_at: list[float] = []
        self._open_s = open_s

    def session_key(self, poll: Poll) -> Hashable:
        return "port 1"

    async def open_session(self, poll: Poll) -> Line:
        self.opened_at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self._open_s)
        self.lines.append(Line(len(self.lines), poll.device))
        return self.lines[-1]

    async def close_session(self, session: Line, *, politely: bool) -> None:
        assert not session.ended
        session.ended = "politely" if politely else "at once"

    async def collect(self, poll: Poll) -> Any:
        await poll.session(self, pause(0.001))
        items: list[Yielded] = []
        for item in items:
            yield item

    @property
    def left(self) -> list[Line]:
        return [line for line in self.lines if not line.ended]


def poll_of(
    pool: Sessions,
    device: str = "r1",
    address: str = "192.0.2.1",
    within_s: float = 5.0,
    **more: Any,
) -> Poll:
    deadline = asyncio.get_running_loop().time() + within_s
    return Poll(
        1, device, address, Options(), more.get("credential", SECRET), deadline, sessions=pool
    )


def pause(seconds: float) -> Callable[[Line], Coroutine[Any, Any, int]]:
    async def work(line: Line) -> int:
        line.users += 1
        assert line.users == 1, "two polls on one session"
        await asyncio.sleep(seconds)
        line.users -= 1
        return line.number

    return work


async def fail(line: Line) -> None:
    raise errors.DeviceProtocolError("it said rubbish")


async def lost(line: Line) -> None:
    raise SessionLost("it hung up")


def limits(**given: Any) -> Rules:
    return Rules(Limits(**given))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.001)


def test_polls_of_a_device_share_one_session_one_after_the_other() -> None:
    """Ten polls side by side, and then one more: one login."""

    async def run() -> None:
        keeper, pool = Keeper(), Sessions()
        used = await asyncio.gather(
            *(poll_of(pool).session(keeper, pause(0.001)) for _ in range(10))
        )
        used.append(await poll_of(pool).session(keeper, pause(0)))
        assert used == [0] * 11
        assert (pool.opened, len(pool)) == (1, 1)

    asyncio.run(run())


def test_another_device_address_or_credential_never_meets_that_session() -> None:
    async def run() -> None:
        keeper, pool = Keeper(), Sessions()
        rotated = Token(token="second-secret")
        polls = [
            {},
            {"device": "r2"},
            {"address": "192.0.2.9"},
            {"credential": rotated},
            {"credential": None},
        ]
        used = [await poll_of(pool, **more).session(keeper, pause(0)) for more in polls]
        assert used == [0, 1, 2, 3, 4]
        again = await poll_of(pool, credential=Token(token="first-secret")).session(
            keeper, pause(0)
        )
        assert again == 0, "the same secret, read anew"

    asyncio.run(run())


def test_no_secret_is_stored_with_a_session() -> None:
    async def run() -> None:
        pool = Sessions()
        await poll_of(pool).session(Keeper(), pause(0))
        [kept] = pool._pooled.values()
        assert "first-secret" not in repr(kept)
        assert not any(isinstance(part, Credential) for part in kept.key)

    asyncio.run(run())


def test_a_session_is_cut_after_an_error() -> None:
    async def run() -> None:
        keeper, pool = Keeper(), Sessions()
        await poll_of(pool).session(keeper, pause(0))
        with pytest.raises(errors.DeviceProtocolError):
            await poll_of(pool).session(keeper, fail)
        assert await poll_of(pool).session(keeper, pause(0)) == 1
        assert [line.ended for line in keeper.lines] == ["at once", ""]

    asyncio.run(run())


def test_a_session_is_cut_after_a_cancellation() -> None:
    async def run() -> None:
        keeper, pool = Keeper(), Sessions()
        task = asyncio.create_task(poll_of(pool).session(keeper, pause(60)))
        await until(lambda: bool(keeper.lines) and keeper.lines[0].users == 1)
        waiting = asyncio.create_task(poll_of(pool).session(keeper, pause(0)))
        task.cancel()
        assert await waiting == 1, "whoever waited got the session with the unread answer"
        assert keeper.lines[0].ended == "at once"

    asyncio.run(run())


def test_a_session_the_device_ended_is_replaced_silently_once() -> None:
    async def run() -> None:
        keeper, pool = Keeper(), Sessions()

        ended: set[int] = set()  # by the device, while they were idle

        async def work(line: Line) -> int:
            if line.number in ended:
                raise SessionLost("it hung up")
            return line.number

        assert await poll_of(pool).session(keeper, work) == 0
        ended.add(0)
        assert await poll_of(pool).session(keeper, work) == 1
        with pytest.raises(SessionLost):
            await poll_of(pool).session(keeper, lost)
        assert pool.opened == 3, "more than one new session for one poll"

    asyncio.run(run())


def test_a_new_session_that_is_lost_at_once_is_an_error() -> None:
    async def run() -> None:
        pool = Sessions()
        with pytest.raises(errors.DeviceUnreachable):
            await poll_of(pool).session(Keeper(), lost)
        assert (pool.opened, len(pool)) == (1, 0)

    asyncio.run(run())


def test_a_host_gets_no_more_sessions_than_it_bears() -> None:
    """Twelve devices share one address: idle sessions are closed, and every poll gets its turn."""

    async def run() -> None:
        keeper, pool = Keeper(open_s=0.001), Sessions(limits(per_host=3))

        async def work(line: Line) -> int:
            assert len(keeper.left) <= 3
            await asyncio.sleep(0.002)
            return len(keeper.left)

        polls = [poll_of(pool, f"r{n}").session(keeper, work) for n in range(12) for _ in range(2)]
        assert max(await asyncio.gather(*polls)) == 3

    asyncio.run(run())


def test_devices_behind_one_address_with_ports_of_their_own_wait_for_nobody() -> None:
    """Two routers behind one NAT: the limit of a host counts each port apart."""

    class WithPort(Options):
        port: int

    async def run() -> None:
        keeper, pool = Keeper(), Sessions(limits(per_host=1))
        polls = [replace(poll_of(pool, f"r{n}"), options=WithPort(port=n)) for n in (8001, 8002)]
        await asyncio.gather(*(poll.session(keeper, pause(0.001)) for poll in polls))
        assert (len(pool), len(keeper.left)) == (2, 2), "both sessions stay open"
        late = replace(poll_of(pool, "r9", within_s=0.1), options=WithPort(port=8001))
        holder = asyncio.create_task(polls[0].session(keeper, pause(60)))
        await until(lambda: any(line.users for line in keeper.lines))
        refused = await poll_runner.run_poll(keeper, late)
        assert "for its turn at 192.0.2.1:8001" in refused.message
        holder.cancel()
        with suppress(asyncio.CancelledError):
            await holder

    asyncio.run(run())


def test_a_poll_that_did_not_get_its_turn_says_so() -> None:
    """The outcome names the wait and blames no device."""

    async def run() -> None:
        keeper, pool = Keeper(), Sessions(limits(per_host=1))
        holder = asyncio.create_task(poll_of(pool).session(keeper, pause(60)))
        await until(lambda: bool(keeper.lines))
        late = await poll_runner.run_poll(keeper, poll_of(pool, "r2", within_s=0.15))
        assert late.error_code == "host_busy"
        assert "for its turn at 192.0.2.1" in late.message
        assert not late.retryable
        elsewhere = await poll_runner.run_poll(keeper, poll_of(pool, "r3", "192.0.2.2"))
        assert elsewhere.error_code == "", "another host waits for nobody"
        holder.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holder
        assert (await poll_runner.run_poll(keeper, poll_of(pool, "r2"))).error_code == ""

    asyncio.run(run())


def test_a_poll_that_had_its_turn_too_late_says_how_long_it_waited() -> None:
    async def silent(line: Line) -> None:
        raise errors.DeviceTimeout("no answer", cause="the time of the poll is up")

    async def run() -> None:
        keeper, pool = Keeper(), Sessions()
        before = asyncio.create_task(poll_of(pool).session(keeper, pause(0.2)))
        await until(lambda: bool(keeper.lines))
        with pytest.raises(
            errors.DeviceTimeout, match=r"time of the poll is up; 0\.\d s of it were spent waiting"
        ):
            await poll_of(pool).session(keeper, silent)
        await before
        with pytest.raises(errors.DeviceTimeout, match=r"the time of the poll is up\)"):
            await poll_of(pool).session(keeper, silent)

    asyncio.run(run())


def test_new_connections_to_a_host_keep_their_distance() -> None:
    async def run() -> None:
        keeper, pool = Keeper(), Sessions(limits(pace_s=0.05))
        await asyncio.gather(*(poll_of(pool, f"r{n}").session(keeper, pause(0)) for n in range(4)))
        gaps = [later - earlier for earlier, later in itertools.pairwise(keeper.opened_at)]
        assert min(gaps) > 0.049
        with pytest.raises(errors.DeviceBusy, match=r"every 0\.05 s"):
            await poll_of(pool, "r9", within_s=0.06).session(keeper, pause(0))
        assert len(keeper.lines) == 4

    asyncio.run(run())


@pytest.mark.parametrize(
    ("rules", "network"),
    [(Rules(per_worker=5), "192.0.2.{}"), (limits(per_host=5), "192.0.2.1")],
    ids=["hosts", "devices of one host"],
)
def test_devices_that_come_in_turns_find_their_sessions_though_there_are_too_many(
    rules: Rules, network: str
) -> None:
    """The one that was used last makes room; there are never more of them than the limit."""

    async def run() -> None:
        keeper, pool = Keeper(), Sessions(rules)
        for number in [*range(10)] * 4:
            await poll_of(pool, f"r{number}", network.format(number)).session(keeper, pause(0))
            assert len(keeper.left) == len(pool) <= 5
        assert pool.opened == 10 + 3 * 5
        assert {line.ended for line in keeper.lines} == {"politely", ""}

    asyncio.run(run())


def test_those_that_had_to_be_opened_beyond_the_limit_are_closed_after_their_polls() -> None:
    async def run() -> None:
        keeper, pool = Keeper(), Sessions(Rules(per_worker=2))
        polls = [
            poll_of(pool, f"r{n}", f"192.0.2.{n}").session(keeper, pause(0.01)) for n in range(5)
        ]
        await asyncio.gather(*polls)
        await until(lambda: len(keeper.left) == 2)
        assert len(pool) == 2

    asyncio.run(run())


@pytest.mark.parametrize("given", [{"idle_s": 0}, {"age_s": 0}], ids=["idle", "old"])
def test_a_session_past_its_limit_is_not_used_again(given: dict[str, float]) -> None:
    async def run() -> None:
        keeper, pool = Keeper(), Sessions(limits(**given))
        await poll_of(pool).session(keeper, pause(0))
        await asyncio.sleep(0.001)
        assert await poll_of(pool).session(keeper, pause(0)) == 1
        assert keeper.lines[0].ended == "politely"

    asyncio.run(run())


def test_idle_sessions_are_closed_without_another_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "SWEEP_S", 0.01)

    async def run() -> None:
        keeper, pool = Keeper(), Sessions(limits(idle_s=0.02))
        await poll_of(pool).session(keeper, pause(0))
        await until(lambda: not len(pool) and not keeper.left)
        await until(lambda: not pool._hosts)

    asyncio.run(run())


def test_all_sessions_are_closed_at_the_end() -> None:
    async def run() -> None:
        keeper, pool = Keeper(), Sessions()
        for number in range(3):
            await poll_of(pool, f"r{number}").session(keeper, pause(0))
        task = asyncio.create_task(poll_of(pool, "busy").session(keeper, pause(60)))
        await until(lambda: len(keeper.lines) == 4)
        await pool.close()
        assert [line.ended for line in keeper.lines] == [*["politely"] * 3, "at once"]
        task.cancel()

    asyncio.run(run())


def test_a_collector_that_ignores_its_end_loses_its_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next poll of the device gets a new one, and the old one is not closed twice."""
    monkeypatch.setattr(sessions, "OVERTIME_S", 0.0)

    async def run() -> None:
        keeper, pool = Keeper(), Sessions(limits(per_host=1))
        stubborn = asyncio.create_task(poll_of(pool, within_s=0.01).session(keeper, pause(0.1)))
        await asyncio.sleep(0.03)
        assert await poll_of(pool).session(keeper, pause(0)) == 1
        assert await stubborn == 0
        assert [line.ended for line in keeper.lines] == ["at once", ""]

    asyncio.run(run())


def test_a_sweep_that_grants_a_session_ends_none_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two collectors of a host ignore their end: the waiting poll keeps its session."""
    monkeypatch.setattr(sessions, "OVERTIME_S", 0.0)

    async def run() -> None:
        keeper, pool = Keeper(), Sessions(limits(per_host=2))
        stubborn = [
            asyncio.create_task(poll_of(pool, name, within_s=0.05).session(keeper, pause(0.2)))
            for name in ("r1", "r2")
        ]
        await until(lambda: len(keeper.lines) == 2)
        waiting = asyncio.create_task(poll_of(pool, "r2").session(keeper, pause(0.01)))
        await asyncio.sleep(0.1)
        pool._sweep()
        assert await waiting == 2
        assert await asyncio.gather(*stubborn) == [0, 1]
        assert [line.ended for line in keeper.lines] == ["at once", "at once", ""]

    asyncio.run(run())


def test_a_session_that_never_ends_does_not_cost_the_device_its_polls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The collector ignores the cancellation: the pool waits once, and never again."""
    monkeypatch.setattr(sessions, "CLOSING_S", 0.02)

    class Clinging(Keeper):
        async def close_session(self, session: Line, *, politely: bool) -> None:
            while not over.is_set():
                with suppress(asyncio.CancelledError):
                    await over.wait()

    async def run() -> None:
        keeper, pool = Clinging(), Sessions()
        with pytest.raises(errors.DeviceProtocolError):
            await poll_of(pool).session(keeper, fail)
        assert await poll_of(pool, within_s=0.5).session(keeper, pause(0)) == 1
        assert not any(host.closing for host in pool._hosts.values())
        over.set()

    over = asyncio.Event()
    asyncio.run(asyncio.wait_for(run(), 5))


def test_without_a_pool_a_session_lasts_for_one_poll() -> None:
    async def run() -> None:
        keeper = Keeper()
        deadline = asyncio.get_running_loop().time() + 1
        poll = Poll(1, "r1", "192.0.2.1", Options(), None, deadline)
        assert [await poll.session(keeper, pause(0)) for _ in range(2)] == [0, 1]
        assert keeper.left == []

    asyncio.run(run())
