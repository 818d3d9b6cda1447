"""Both engines read from snmpd what net-snmp's tools read, in every version, as every user."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from poller import errors
from poller.collectors.credentials import Community, Credential, SnmpV3
from poller.collectors.snmp.engines import link_pool
from poller.collectors.snmp.engines.engine_protocol import Link, Row
from poller.collectors.snmp.engines.link_pool import EngineOption, LinkPool
from poller.collectors.snmp.read.walker import Walker
from poller.collectors.snmp.wire import value_types
from tests.integration.snmp_links import get, rows, talk, walk
from tests.integration.test_collector_snmp import (
    AUTH,
    PRIV,
    Snmpd,
    free_udp_port,
    has_ipv6,
    net_snmp,
    running_snmpd,
)

ENGINES: list[EngineOption] = ["gufo", "exact"]
PUBLIC = Community.from_text("public")
SYSTEM, INTERFACES, IF_X = "1.3.6.1.2.1.1", "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1"
SYS_NAME, SYS_UPTIME = f"{SYSTEM}.5.0", f"{SYSTEM}.3.0"
AUTHS = get_args(SnmpV3.model_fields["auth_protocol"].annotation)
PRIVS = get_args(SnmpV3.model_fields["priv_protocol"].annotation)
#: Users of all protocols that we offer; Debian's snmpd has them all.
USERS = [(f"{auth}-{priv}".lower(), auth, priv) for auth, priv in product(AUTHS, (*PRIVS, None))]
TYPES = {
    "Counter32": "Counter32",
    "Counter64": "Counter64",
    "Gauge32": "Gauge32",
    "Timeticks": "TimeTicks",
    "INTEGER": "Integer32",
    "OID": "Oid",
    "IpAddress": "IpAddress",
    "Opaque": "Float",
}

pytestmark = pytest.mark.parametrize("engine", ENGINES)


def user_lines() -> str:
    lines = ["createUser nobody", "rouser nobody noauth", "view all included .1"]
    for name, auth, priv in USERS:
        spelled = re.sub(r"SHA(\d)", r"SHA-\1", auth)
        lines.append(
            f'createUser {name} {spelled} "{AUTH}"' + (f' {priv} "{PRIV}"' if priv else "")
        )
        lines.append(f"rouser {name} {'priv' if priv else 'auth'} -V all *")
    return "\n".join(lines) + "\n"


def v3(name: str, auth: str | None = None, priv: str | None = None, **other: str) -> SnmpV3:
    fields = {"username": name}
    if auth:
        fields |= {"auth_protocol": auth, "auth_password": AUTH}
    if priv:
        fields |= {"priv_protocol": priv, "priv_password": PRIV}
    return SnmpV3.from_fields({**fields, **other})


FULL = v3("sha-aes", "SHA", "AES")


@pytest.fixture(scope="module")
def snmpd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snmpd]:
    """An snmpd with another one behind it as the context `inner`."""
    with running_snmpd(
        tmp_path_factory.mktemp("inner"), free_udp_port(), name="insidebox"
    ) as inner:
        proxy = f"proxy -Cn inner -v 2c -c public 127.0.0.1:{inner.port} .1.3.6.1.2.1.1\n"
        with running_snmpd(
            tmp_path_factory.mktemp("snmpd"), free_udp_port(), more=user_lines() + proxy
        ) as daemon:
            yield daemon


def printed_type(text: str) -> str:
    """The type in net-snmp's `Counter32: 7`; text without one is a number of ticks."""
    kind, colon, _ = text.partition(": ")
    if not colon:
        return "TimeTicks" if text.isdigit() else "OctetString"
    return TYPES.get(kind, "OctetString")


@pytest.mark.parametrize("root", [SYSTEM, INTERFACES, IF_X])
@pytest.mark.parametrize("exact", [True, False])
def test_a_walk_gives_the_rows_that_snmpbulkwalk_shows(
    engine: EngineOption, snmpd: Snmpd, root: str, exact: bool
) -> None:
    shown = net_snmp("snmpbulkwalk", snmpd.port, root)
    found = rows(engine, snmpd.port, PUBLIC, root, exact=exact)
    assert [name for name, _ in found] == list(shown)
    if exact:
        assert {name: value_types.type_name(value) for name, value in found} == {
            n: printed_type(t) for n, t in shown.items()
        }


def test_both_engines_give_equal_values_exact_or_not(engine: EngineOption, snmpd: Snmpd) -> None:
    """Only columns that do not change between two reads."""
    still = [f"{INTERFACES}.{column}" for column in (1, 2, 3, 4, 6)] + [f"{IF_X}.1"]
    for root in still:
        plain = rows("gufo", snmpd.port, PUBLIC, root, exact=False)
        assert rows(engine, snmpd.port, PUBLIC, root, exact=True) == plain
        assert rows(engine, snmpd.port, FULL, root, exact=True) == plain


@pytest.mark.parametrize(("name", "auth", "priv"), [("nobody", None, None), *USERS])
def test_every_user_of_version_3_is_accepted(
    engine: EngineOption, snmpd: Snmpd, name: str, auth: str | None, priv: str | None
) -> None:
    """Every authentication with every privacy protocol, with both key extensions."""
    found = dict(get(engine, snmpd.port, v3(name, auth, priv), (SYS_NAME, SYS_UPTIME)))
    assert found[SYS_NAME] == b"testbox"
    assert value_types.type_name(found[SYS_UPTIME]) == "TimeTicks"


@pytest.mark.parametrize("version", ["1", "2c"])
def test_versions_with_a_community(engine: EngineOption, snmpd: Snmpd, version: str) -> None:
    found = dict(get(engine, snmpd.port, PUBLIC, (SYS_NAME, SYS_UPTIME), version=version))
    assert found[SYS_NAME] == b"testbox"
    walked = rows(engine, snmpd.port, PUBLIC, SYSTEM, version=version)
    assert [name for name, _ in walked] == list(net_snmp("snmpbulkwalk", snmpd.port, SYSTEM))


def test_absent_oids_are_left_out(engine: EngineOption, snmpd: Snmpd) -> None:
    absent = f"{SYSTEM}.99.0"
    for credential in (PUBLIC, FULL):
        assert dict(get(engine, snmpd.port, credential, (SYS_NAME, absent))) == {
            SYS_NAME: b"testbox"
        }
        assert rows(engine, snmpd.port, credential, f"{SYSTEM}.99") == []
    assert dict(get(engine, snmpd.port, PUBLIC, (SYS_NAME, absent), version="1")) == {
        SYS_NAME: b"testbox"
    }


def test_the_last_table_of_the_tree_ends(engine: EngineOption, snmpd: Snmpd) -> None:
    """endOfMibView is not returned as a row."""
    assert (
        rows(engine, snmpd.port, PUBLIC, "1.3.6.1.6.3.99")
        == rows(engine, snmpd.port, FULL, "2.1")
        == []
    )


@pytest.mark.parametrize(
    ("credential", "cause"),
    [
        (
            v3("sha-aes", "SHA", "AES", auth_password="wrong-password"),
            "authentication password or protocol",
        ),
        (v3("sha-aes", "SHA256", "AES"), "authentication password or protocol"),
        (v3("stranger", "SHA", "AES"), "no such user"),
        (v3("sha-none", "SHA", "AES"), "security level"),
    ],
)
def test_a_refusal_gives_its_cause(
    engine: EngineOption, snmpd: Snmpd, credential: SnmpV3, cause: str
) -> None:
    with pytest.raises(errors.DeviceAuthFailed) as caught:
        get(engine, snmpd.port, credential, (SYS_NAME,))
    assert cause in str(caught.value)
    assert "wrong-password" not in str(caught.value)


@pytest.mark.parametrize("priv", ["DES", "AES"])
def test_a_wrong_privacy_password_is_a_timeout_with_that_cause(
    engine: EngineOption, snmpd: Snmpd, priv: str
) -> None:
    """snmpd answers the discovery, and nothing that it cannot decrypt."""
    credential = v3(f"sha-{priv}".lower(), "SHA", priv, priv_password="wrong-password")
    with pytest.raises(errors.DeviceTimeout, match="wrong privacy password") as caught:
        get(engine, snmpd.port, credential, (SYS_NAME,), timeout_s=0.3, retries=0)
    assert "priv_password" in caught.value.hint


def test_a_level_below_the_users_is_refused(engine: EngineOption, snmpd: Snmpd) -> None:
    """snmpd answers with an error status for this security level."""
    walked = walk(engine, snmpd.port, v3("sha-aes", "SHA"), SYSTEM)
    assert isinstance(walked.error, errors.DeviceAuthFailed)


def test_ipv6(engine: EngineOption, snmpd: Snmpd) -> None:
    if not has_ipv6():
        pytest.skip("no IPv6 on this machine")

    async def ask() -> list[Row]:
        pool = LinkPool()
        found = []
        for credential in (PUBLIC, FULL):
            key = link_pool.link_key("::1", snmpd.port, "2c", credential, engine=engine)
            link = pool.acquire(key, credential)

            async def once(
                exchange: Callable[[int, float], Awaitable[Any]], /, tries: int = 0
            ) -> Any:
                return await exchange(0, 1.0)

            await link.handshake(once)
            found += await link.get((SYS_NAME,), 1.0)
            pool.release(key, link, reusable=True)
        pool.close()
        return found

    assert asyncio.run(ask()) == [(SYS_NAME, b"testbox")] * 2


def test_a_closed_port_is_unreachable_not_a_timeout(engine: EngineOption) -> None:
    for credential in (PUBLIC, FULL):
        with pytest.raises(errors.DeviceUnreachable):
            get(engine, free_udp_port(), credential, (SYS_NAME,))


def test_a_restarted_agent_is_followed(engine: EngineOption, tmp_path: Path) -> None:
    """A report corrects the clock and the request is sent again: no discovery, no error."""

    async def ask(port: int, pool: LinkPool) -> Row:
        (row,) = await talk(
            engine, port, FULL, lambda walker, _: walker.get((SYS_NAME,)), pool=pool
        )
        return row

    async def twice() -> None:
        pool, port = LinkPool(), free_udp_port()
        for _ in range(2):
            with running_snmpd(tmp_path / "same", port, more=user_lines()):
                assert await ask(port, pool) == (SYS_NAME, b"testbox")
        pool.close()

    asyncio.run(twice())


@pytest.mark.parametrize("credential", [PUBLIC, FULL])
def test_one_request_gives_the_next_oid_of_several(
    engine: EngineOption, snmpd: Snmpd, credential: Credential
) -> None:
    """The first row of each column; an empty text at the end of the view."""
    roots = [f"{INTERFACES}.{column}" for column in (1, 2, 4)]

    async def ask(walker: Walker, link: Link) -> list[str]:
        names = list(await link.next_oids([*roots, "2.999"], 1.0))
        assert names == [*(await link.next_oids([*roots], 1.0)), ""]
        return names[:-1]

    names = asyncio.run(talk(engine, snmpd.port, credential, ask))
    assert names == [rows(engine, snmpd.port, credential, root)[0][0] for root in roots]


def test_links_that_discover_an_agent_at_once_do_not_disturb_each_other(
    engine: EngineOption, snmpd: Snmpd
) -> None:
    """Two targets of a new device are polled together; they share what is known of its agent."""

    async def ask_thrice() -> list[Row]:
        pool = LinkPool()

        async def ask(walker: Walker, link: Link) -> Row:
            return (await walker.get((SYS_NAME,)))[0]

        choices: list[EngineOption] = [engine, "exact", engine]
        polls = [talk(each, snmpd.port, FULL, ask, pool=pool) for each in choices]
        found = list(await asyncio.gather(*polls))
        pool.close()
        return found

    assert asyncio.run(ask_thrice()) == [(SYS_NAME, b"testbox")] * 3


def test_a_context_has_its_own_values(engine: EngineOption, snmpd: Snmpd) -> None:
    """gufo has no contexts, so `auto` uses exact. snmpd does not answer for an unknown context."""
    choice: EngineOption = "auto" if engine == "gufo" else engine
    assert dict(get(choice, snmpd.port, FULL, (SYS_NAME,), context="inner")) == {
        SYS_NAME: b"insidebox"
    }
    assert dict(get(choice, snmpd.port, FULL, (SYS_NAME,))) == {SYS_NAME: b"testbox"}
    with pytest.raises(errors.DeviceTimeout):
        get(choice, snmpd.port, FULL, (SYS_NAME,), context="outer", timeout_s=0.2, retries=0)
    with pytest.raises(errors.DeviceUnsupported, match="only SNMPv3"):
        get(choice, snmpd.port, PUBLIC, (SYS_NAME,), context="inner")
