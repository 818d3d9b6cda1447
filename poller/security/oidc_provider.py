"""OpenID Connect: the authorization code flow with PKCE, and every check of the ID token.

Blocking; each request to the provider has a time-out. Texts of errors contain neither codes nor
tokens.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from poller import errors

TIMEOUT_S = 5.0
#: The provider's addresses and keys are read again after this long.
REREAD_S = 3600.0
#: Keys are read again for an unknown key at most this often.
KEYS_EVERY_S = 30.0
LARGEST_RESPONSE = 1_048_576
#: Difference of clocks that is forgiven.
SKEW_S = 60
#: Signatures with a key pair. Never `none`, and never a secret that the client has too.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
_WANTED_SCOPES = ("openid", "profile", "email", "groups")
_LOCAL_HINT = "try again later, or log in with a name and a password"


@dataclass(frozen=True, slots=True)
class Client:
    """How poller is registered at the provider."""

    issuer: str
    client_id: str
    client_secret: str
    groups_claim: str = "groups"

    def __repr__(self) -> str:
        return f"Client({self.issuer}, {self.client_id})"


@dataclass(frozen=True, slots=True)
class Request:
    """The memory of a login between the way to the provider and the way back."""

    state: str
    nonce: str
    verifier: str
    redirect_uri: str


@dataclass(frozen=True, slots=True)
class Person:
    """Whom the provider logged in."""

    name: str
    groups: tuple[str, ...]


class Provider:
    """One provider. Its addresses and keys are read when they are needed first."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._clock = clock
        self._http = httpx.Client(timeout=TIMEOUT_S, follow_redirects=False)
        self._metadata: dict[str, Any] = {}
        self._keys: KeySet | None = None
        self._metadata_mono = self._keys_mono = -REREAD_S

    def authorization_url(self, request: Request) -> str:
        """Return the address that the browser is sent to. Raises NotLoggedIn."""
        metadata = self._read_metadata()
        offered = metadata.get("scopes_supported") or _WANTED_SCOPES
        wanted = [scope for scope in _WANTED_SCOPES if scope in offered]
        challenge = hashlib.sha256(request.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._client.client_id,
            "redirect_uri": request.redirect_uri,
            "scope": " ".join(wanted),
            "state": request.state,
            "nonce": request.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        endpoint = str(metadata["authorization_endpoint"])
        separator = "&" if urlsplit(endpoint).query else "?"
        return f"{endpoint}{separator}{urlencode(query)}"

    def person(self, request: Request, answer: Mapping[str, str]) -> Person:
        """Return whom the provider's answer logs in. Raises NotLoggedIn.

        `answer` are the parameters with which the browser comes back.
        """
        if not hmac.compare_digest(request.state.encode(), answer.get("state", "").encode()):
            raise _refused("the answer belongs to another login")
        if "error" in answer:
            raise _refused(f"it answered {answer['error'][:100]!a}")
        if answer.get("iss", self._client.issuer) != self._client.issuer:
            raise _refused("the answer is from another provider")
        tokens = self._exchange(request, answer.get("code", ""))
        claims = self._claims(str(tokens.get("id_token", "")), request.nonce)
        if self._client.groups_claim not in claims:
            claims = {**self._user_info(tokens, claims["sub"]), **claims}
        return Person(_name(claims), _groups(claims.get(self._client.groups_claim)))

    def _exchange(self, request: Request, code: str) -> dict[str, Any]:
        """Trade the code for tokens."""
        metadata = self._read_metadata()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": request.redirect_uri,
            "code_verifier": request.verifier,
        }
        client = self._client
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if "client_secret_basic" in methods:
            login = httpx.BasicAuth(_encoded(client.client_id), _encoded(client.client_secret))
            return self._fetch("POST", metadata["token_endpoint"], data=form, auth=login)
        form |= {"client_id": client.client_id, "client_secret": client.client_secret}
        return self._fetch("POST", metadata["token_endpoint"], data=form)

    def _claims(self, id_token: str, nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token whose signature and claims are right."""
        try:
            found = jwt.decode(id_token, self._known_keys(id_token), algorithms=ALGORITHMS)
            claims = dict(found.claims)
            self._check(claims, nonce)
        except JoseError as error:
            raise _refused(f"its ID token is not valid: {error.error}") from None
        except (ValueError, TypeError, KeyError):
            raise _refused("its ID token cannot be read") from None
        return claims

    def _check(self, claims: dict[str, Any], nonce: str) -> None:
        client_id = self._client.client_id
        registry = jwt.JWTClaimsRegistry(
            now=lambda: int(self._clock()),
            leeway=SKEW_S,
            iss={"essential": True, "value": self._client.issuer},
            aud={"essential": True, "value": client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
        )
        registry.validate(claims)
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise _refused("its ID token belongs to another login")
        audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        if (len(audiences) > 1 or "azp" in claims) and claims.get("azp") != client_id:
            raise _refused("its ID token is for another client")

    def _known_keys(self, id_token: str) -> KeySet:
        """Return the provider's keys, read again if the token has a key that is not among them."""
        key_id = _key_id(id_token)
        now_mono = time.monotonic()
        known = [] if self._keys is None else [key.kid for key in self._keys.keys]
        is_unknown = key_id is not None and key_id not in known
        is_due = now_mono > self._keys_mono + (KEYS_EVERY_S if is_unknown else REREAD_S)
        if self._keys is None or is_due:
            document = self._fetch("GET", self._read_metadata()["jwks_uri"])
            self._keys = KeySet.import_key_set(_signing_keys(document))
            self._keys_mono = now_mono
        return self._keys

    def _user_info(self, tokens: Mapping[str, Any], subject: str) -> dict[str, Any]:
        """Return more claims, for a provider that names groups there."""
        endpoint = self._read_metadata().get("userinfo_endpoint")
        if not endpoint or not tokens.get("access_token"):
            return {}
        headers = {"Authorization": f"Bearer {tokens['access_token']}"}
        found = self._fetch("GET", endpoint, headers=headers)
        if found.get("sub") != subject:
            raise _refused("it describes another user")
        return found

    def _read_metadata(self) -> dict[str, Any]:
        """Return the provider's description of itself."""
        now_mono = time.monotonic()
        if self._metadata and now_mono < self._metadata_mono + REREAD_S:
            return self._metadata
        issuer = self._client.issuer
        found = self._fetch("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != issuer:
            raise _refused(f"it calls itself {str(found.get('issuer'))[:200]!a}, not {issuer}")
        needed = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        for name in needed:
            if not self._is_safe(str(found.get(name, ""))):
                raise _refused(f"its {name} is missing or not https")
        self._metadata = found
        self._metadata_mono = now_mono
        return found

    def _is_safe(self, url: str) -> bool:
        """Whether nobody on the way can change what is sent to this address."""
        issuer = urlsplit(self._client.issuer)
        own = f"{issuer.scheme}://{issuer.netloc}/"  # http only on this host: access_fields.py
        return url.startswith(("https://", own))

    def _fetch(self, method: str, url: str, **more: Any) -> dict[str, Any]:
        """Return a JSON object of the provider. Raises NotLoggedIn."""
        host = urlsplit(url).netloc
        try:
            with self._http.stream(method, url, **more) as response:
                body = b""
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > LARGEST_RESPONSE:
                        raise _refused("its response is too long")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = f"{type(error).__name__} at {host}"
            raise errors.NotLoggedIn(
                "the login provider does not respond", reason, _LOCAL_HINT
            ) from None
        if response.status_code != httpx.codes.OK:
            raise _refused(f"{host} answered with status {response.status_code}")
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            raise _refused(f"{host} did not answer with JSON") from None
        if not isinstance(found, dict):
            raise _refused(f"{host} did not answer with a JSON object")
        return found


def _refused(reason: str) -> errors.NotLoggedIn:
    return errors.NotLoggedIn("the login provider did not log you in", reason, _LOCAL_HINT)


def _encoded(text: str) -> str:
    """Return a client id or secret as RFC 6749 wants it before Basic authentication."""
    return urlencode({"": text})[1:]


def _key_id(id_token: str) -> str | None:
    """Return the key id of a token's head; None if the head cannot be read or has none."""
    head = id_token.partition(".")[0]
    try:
        fields = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, RecursionError):
        return None
    return fields.get("kid") if isinstance(fields, dict) else None


def _signing_keys(document: Mapping[str, Any]) -> Any:
    """Return the keys of a key set that can sign and are of a known type."""
    keys = document.get("keys")
    if not isinstance(keys, list):
        raise _refused("its key set has no keys")
    usable = [
        key
        for key in keys
        if isinstance(key, dict)
        and key.get("use", "sig") == "sig"
        and key.get("kty") in ("RSA", "EC", "OKP")
    ]
    return {"keys": usable}


def _name(claims: Mapping[str, Any]) -> str:
    """Return the name that people know; the subject is unique, but often a random text."""
    for claim in ("preferred_username", "email", "sub"):
        if isinstance(claims.get(claim), str) and claims[claim]:
            return str(claims[claim])
    raise _refused("it does not name the user")


def _groups(claim: Any) -> tuple[str, ...]:
    if isinstance(claim, str):
        return (claim,)
    if isinstance(claim, list):
        return tuple(str(group) for group in claim)
    return ()
