"""Names and scopes of users and tokens, groups, limits, and requests of foreign sites."""

from __future__ import annotations

import pytest

from poller import errors
from poller.domain.access import accounts, group_roles, login_limits, same_site
from poller.domain.access.accounts import Account
from poller.domain.access.scopes import Role, Scope

ADMIN = Account(Role.ADMIN, True)
OFF = Account(Role.ADMIN, False)
VIEWER = Account(Role.VIEWER, True)


@pytest.mark.parametrize(
    ("remaining", "may_be_empty", "is_refused"),
    [
        ([ADMIN], False, False),
        ([ADMIN, VIEWER], False, False),
        ([VIEWER], True, True),
        ([VIEWER, OFF], True, True),
        ([OFF], True, False),
        ([OFF], False, True),
        ([], True, False),
        ([], False, True),
    ],
)
def test_somebody_stays_able_to_log_in(
    remaining: list[Account], may_be_empty: bool, is_refused: bool
) -> None:
    """The last enabled admin stays, unless all users may go."""
    if not is_refused:
        accounts.refuse_nobody_left(remaining, may_be_empty=may_be_empty)
        return
    with pytest.raises(errors.InvalidInput, match="last enabled user with the role admin"):
        accounts.refuse_nobody_left(remaining, may_be_empty=may_be_empty)


def test_a_local_name_cannot_be_a_name_of_the_provider() -> None:
    """Names of OpenID Connect begin with `oidc:`, and a colon is in no local name."""
    with pytest.raises(errors.InvalidInput, match="contains :"):
        accounts.checked_user_name(f"{accounts.OIDC_MARK}kim")
    assert accounts.checked_user_name("kim@example.net") == "kim@example.net"


def test_scopes_and_roles_are_known_words() -> None:
    """An unknown word names the words that exist."""
    assert accounts.checked_scopes(["read", "operate", "read"]) == [Scope.READ, Scope.OPERATE]
    for words in (["write"], []):
        with pytest.raises(errors.InvalidInput):
            accounts.checked_scopes(words)
    assert accounts.checked_role("admin") is Role.ADMIN
    with pytest.raises(errors.InvalidInput) as refused:
        accounts.checked_role("root")
    assert refused.value.hint == "use one of viewer, operator, admin"


def test_the_highest_role_of_the_groups_counts() -> None:
    """A user without a group of ours has no role, unless everybody has one."""
    roles = group_roles.parse(["noc=viewer", "cn=net,ou=x=operator", "root = admin"])
    assert roles == {"noc": Role.VIEWER, "cn=net,ou=x": Role.OPERATOR, "root": Role.ADMIN}
    assert group_roles.highest(["root", "noc"], roles) is Role.ADMIN
    assert group_roles.highest(["noc", "sales"], roles) is Role.VIEWER
    assert group_roles.highest(["sales"], roles) is None
    assert group_roles.highest([], group_roles.parse(["*=viewer"])) is Role.VIEWER
    for word in ("noc", "noc=root", "=viewer"):
        with pytest.raises(errors.InvalidSetting):
            group_roles.parse([word])


@pytest.mark.parametrize(
    ("fetch_site", "origin", "is_foreign"),
    [
        ("same-origin", "https://evil.example", False),
        ("none", "", False),
        ("cross-site", "https://poller.example", True),
        ("same-site", "", True),
        ("", "https://poller.example", False),
        ("", "https://POLLER.example", False),
        ("", "https://poller.example:8443", True),
        ("", "https://evil.example", True),
        ("", "null", True),
        ("", "", False),
    ],
)
def test_a_request_of_another_site_is_recognised(
    fetch_site: str, origin: str, is_foreign: bool
) -> None:
    """The headers of the browser decide; a request without them is from no browser."""
    assert same_site.is_foreign(fetch_site, origin, "poller.example") is is_foreign


def test_addresses_of_one_network_count_as_one() -> None:
    """An IPv6 host has 2^64 addresses to guess from; IPv4 in IPv6 counts as IPv4."""
    counted = login_limits.counted_address
    assert counted("2001:db8::1") == counted("2001:db8::ffff:1") == "2001:db8::"
    assert counted("2001:db8:0:1::1") != counted("2001:db8::1")
    assert counted("::ffff:192.0.2.1") == counted("192.0.2.1") == "192.0.2.1"
    assert counted("unix") == "unix"
