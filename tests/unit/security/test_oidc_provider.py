"""ID tokens that no honest provider sends are refused, each for its own reason."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from poller import errors
from poller.security import oidc_provider
from poller.security.oidc_provider import Client, Provider, Request

ISSUER = "https://login.example.net"
KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}, auto_kid=False)
FOREIGN = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}, auto_kid=False)
REQUEST = Request("the state", "the nonce", "the verifier", "https://poller.example/callback")
ANSWER = {"state": "the state", "code": "the code", "iss": ISSUER}
NOW_S = int(time.time())


def claims(**changes: Any) -> dict[str, Any]:
    found = {
        "iss": ISSUER,
        "aud": "poller",
        "sub": "1234",
        "exp": NOW_S + 300,
        "iat": NOW_S,
        "nonce": "the nonce",
        "preferred_username": "kim",
        "groups": ["noc"],
        **changes,
    }
    return {name: value for name, value in found.items() if value is not None}


def signed(body: dict[str, Any], key: Any = KEY, algorithm: str = "RS256") -> str:
    return jwt.encode({"alg": algorithm, "kid": "one"}, body, key, algorithms=[algorithm])


class FakeProvider:
    """Answers the requests of the client with documents that a test changes."""

    def __init__(self, id_token: str) -> None:
        self.id_token = id_token
        self.metadata: dict[str, Any] = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/auth",
            "token_endpoint": f"{ISSUER}/token",
            "jwks_uri": f"{ISSUER}/keys",
            "userinfo_endpoint": f"{ISSUER}/me",
            "scopes_supported": ["openid", "profile"],
        }
        self.user_info: dict[str, Any] = {"sub": "1234", "groups": ["of userinfo"]}
        self.requests: list[httpx.Request] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        documents: dict[str, Callable[[], Any]] = {
            "/.well-known/openid-configuration": lambda: self.metadata,
            "/keys": lambda: {"keys": [KEY.as_dict(private=False), {"kty": "unknown"}]},
            "/token": lambda: {"id_token": self.id_token, "access_token": "opaque"},
            "/me": lambda: self.user_info,
        }
        return httpx.Response(200, json=documents[request.url.path]())

    def client(self) -> Provider:
        made = Provider(Client(ISSUER, "poller", "s:e/c"), lambda: NOW_S)
        made._http = httpx.Client(transport=httpx.MockTransport(self.answer))
        return made


def test_a_right_token_names_the_person() -> None:
    """The code goes to the provider with the verifier, and the secret with its encoding."""
    fake = FakeProvider(signed(claims()))
    person = fake.client().person(REQUEST, ANSWER)
    assert (person.name, person.groups) == ("kim", ("noc",))
    [sent] = [each for each in fake.requests if each.url.path == "/token"]
    assert b"code_verifier=the+verifier" in sent.content
    assert sent.headers["authorization"] == str(
        next(httpx.BasicAuth("poller", "s%3Ae%2Fc").auth_flow(sent)).headers["authorization"]
    )


def test_the_address_asks_for_what_the_provider_offers() -> None:
    """A provider without the scope `groups` would refuse it."""
    url = httpx.URL(FakeProvider("").client().authorization_url(REQUEST))
    query = dict(url.params)
    assert (query["scope"], query["code_challenge_method"]) == ("openid profile", "S256")
    assert query["state"] == "the state"
    assert "the verifier" not in str(url)


@pytest.mark.parametrize(
    "token",
    [
        signed(claims(iss="https://evil.example")),
        signed(claims(iss=None)),
        signed(claims(aud="other")),
        signed(claims(aud=["poller", "other"])),
        signed(claims(azp="other")),
        signed(claims(exp=NOW_S - 61)),
        signed(claims(exp=None)),
        signed(claims(iat=NOW_S + 120)),
        signed(claims(nonce="another")),
        signed(claims(nonce=None)),
        signed(claims(sub=None)),
        signed(claims(), FOREIGN),
        signed(claims(), OctKey.import_key("s:e/c" * 8), "HS256"),
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.",
        "nonsense",
        "",
    ],
)
def test_a_forged_or_foreign_token_is_refused(token: str) -> None:
    """The error does not repeat the token."""
    with pytest.raises(errors.NotLoggedIn) as refused:
        FakeProvider(token).client().person(REQUEST, ANSWER)
    assert not token or token not in str(refused.value)


def test_clocks_may_differ_a_little() -> None:
    """A token that ended half a minute ago is accepted, and one of half a minute ahead."""
    for body in (claims(exp=NOW_S - 30), claims(iat=NOW_S + 30)):
        assert FakeProvider(signed(body)).client().person(REQUEST, ANSWER).name == "kim"


@pytest.mark.parametrize(
    "answer",
    [
        {**ANSWER, "state": "another"},
        {"code": "the code"},
        {**ANSWER, "iss": "https://evil.example"},
        {"state": "the state", "error": "access_denied"},
    ],
)
def test_a_wrong_answer_is_refused_before_the_code_is_used(answer: dict[str, str]) -> None:
    """The provider is not asked for tokens."""
    fake = FakeProvider(signed(claims()))
    with pytest.raises(errors.NotLoggedIn):
        fake.client().person(REQUEST, answer)
    assert fake.requests == []


def test_groups_may_be_at_the_userinfo_address() -> None:
    """The description of another subject is refused."""
    fake = FakeProvider(signed(claims(groups=None)))
    assert fake.client().person(REQUEST, ANSWER).groups == ("of userinfo",)
    fake.user_info["sub"] = "another"
    with pytest.raises(errors.NotLoggedIn, match="another user"):
        fake.client().person(REQUEST, ANSWER)


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://login.example.net/token"},
        {"jwks_uri": None},
    ],
)
def test_a_provider_that_is_not_what_it_says_is_refused(changes: dict[str, Any]) -> None:
    """The secret is not sent anywhere."""
    fake = FakeProvider(signed(claims()))
    fake.metadata |= changes
    with pytest.raises(errors.NotLoggedIn):
        fake.client().person(REQUEST, ANSWER)
    assert [each.url.path for each in fake.requests] == ["/.well-known/openid-configuration"]


def test_a_new_key_of_the_provider_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Providers change their keys without notice."""
    fake = FakeProvider(signed(claims()))
    client = fake.client()
    client.person(REQUEST, ANSWER)
    client.person(REQUEST, ANSWER)
    assert [each.url.path for each in fake.requests].count("/keys") == 1
    monkeypatch.setattr(oidc_provider, "KEYS_EVERY_S", 0.0)
    fake.id_token = jwt.encode({"alg": "RS256", "kid": "two"}, claims(), FOREIGN)
    with pytest.raises(errors.NotLoggedIn):
        client.person(REQUEST, ANSWER)
    assert [each.url.path for each in fake.requests].count("/keys") == 2
