"""Logins out of snmp_exporter's files: `auths` entries, and in the flat format each module's own `version` and `auth`.

Nothing of what is written there is ever repeated, neither in an error nor in a `repr`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from poller import errors
from poller.collectors.credentials import Community, Credential, SnmpV3
from poller.collectors.snmp.modules.typed_fields import Fields, mapping
from poller.collectors.snmp.modules.yaml_text import Node

_LOGIN = {
    "community",
    "security_level",
    "username",
    "password",
    "auth_protocol",
    "priv_protocol",
    "priv_password",
    "context_name",
}
_AUTH_PROTOCOLS = ("MD5", "SHA", "SHA224", "SHA256", "SHA384", "SHA512")
_PRIV_PROTOCOLS = ("DES", "AES", "AES192", "AES192C", "AES256", "AES256C")
_LEVELS = ("noAuthNoPriv", "authNoPriv", "authPriv")


@dataclass(frozen=True, slots=True)
class Auth:
    """A version of the protocol with what it takes to log in."""

    version: int
    credential: Credential
    context: str = ""


def of_entry(node: Node, where: str) -> Auth:
    """An entry of `auths`."""
    fields = Fields(node, where, {*_LOGIN, "version"}, discreet=True)
    return _auth(fields, _version(fields))


def of_module(node: Node, where: str) -> Auth:
    """What a module of the flat format says."""
    body = mapping(node, where)
    version = _version(Fields({"version": body.get("version")}, where, {"version"}, discreet=True))
    login = body.get("auth")
    return _auth(
        Fields({} if login is None else login, f"{where}: auth", _LOGIN, discreet=True), version
    )


def _version(fields: Fields) -> int:
    version = fields.whole("version", 1, 3)
    return 2 if version is None else version


def _auth(fields: Fields, version: int) -> Auth:
    if version < 3:
        credential: Credential = Community.from_fields(
            {"community": fields.text("community", "public")}
        )
    else:
        credential = _user(fields)
    return Auth(version, credential, fields.text("context_name"))


def _user(fields: Fields) -> SnmpV3:
    level = _LEVELS.index(_one_of(fields, "security_level", _LEVELS))
    found: dict[str, Any] = {"username": _given(fields, "username", "version 3")}
    if level >= 1:
        found["auth_protocol"] = _one_of(fields, "auth_protocol", _AUTH_PROTOCOLS)
        found["auth_password"] = _given(fields, "password", f"security_level {_LEVELS[level]}")
    if level == 2:
        found["priv_protocol"] = _one_of(fields, "priv_protocol", _PRIV_PROTOCOLS)
        found["priv_password"] = _given(fields, "priv_password", "security_level authPriv")
    return SnmpV3.from_fields(found)


def _one_of(fields: Fields, key: str, known: tuple[str, ...]) -> str:
    text = fields.text(key, known[0])
    if text not in known:
        raise fields.refused(key, "is none that exists", "use " + ", ".join(known))
    return text


def _given(fields: Fields, key: str, why: str) -> str:
    text = fields.text(key)
    if not text:
        raise errors.ConfigError(f"{fields.where}: {key} is missing; {why} needs it")
    return text
