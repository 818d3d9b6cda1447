"""Logins in snmp_exporter's files: entries of `auths`, and the flat format's `version` and `auth`.

No text of a login is ever repeated, neither in an error nor in a `repr`.
"""

from __future__ import annotations

from dataclasses import dataclass

from poller import errors
from poller.collectors.credentials import Community, Credential, SnmpV3
from poller.collectors.snmp.modules.typed_fields import Fields, mapping
from poller.collectors.snmp.modules.yaml_text import Node

_LOGIN_FIELDS = {
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
    """A protocol version with the credential and context of a login."""

    version: int
    credential: Credential
    context: str = ""


def from_entry(node: Node, where: str) -> Auth:
    """Parse an entry of `auths`. Raises ConfigError."""
    fields = Fields(node, where, {*_LOGIN_FIELDS, "version"}, discreet=True)
    return _auth(fields, _version(fields))


def from_module(node: Node, where: str) -> Auth:
    """Parse the login of a module in the flat format.

    Raises ConfigError.
    """
    body = mapping(node, where)
    version = Fields({"version": body.get("version")}, where, {"version"}, discreet=True)
    login = body.get("auth")
    if login is None:
        login = {}

    fields = Fields(login, f"{where}: auth", _LOGIN_FIELDS, discreet=True)
    return _auth(fields, _version(version))


def _version(fields: Fields) -> int:
    """Return the protocol version; SNMPv2c is the default."""
    version = fields.whole("version", 1, 3)
    return 2 if version is None else version


def _auth(fields: Fields, version: int) -> Auth:
    """Return the login of a version: a community, or an SNMPv3 user."""
    context = fields.text("context_name")
    if version == 3:
        return Auth(version, _user(fields), context)

    community = fields.text("community", "public")
    credential = Community.from_fields({"community": community})
    return Auth(version, credential, context)


def _user(fields: Fields) -> SnmpV3:
    """Return an SNMPv3 user with what the security level needs."""
    level = _one_of(fields, "security_level", _LEVELS)
    user = {"username": _required(fields, "username", "version 3")}
    if level != "noAuthNoPriv":
        user["auth_protocol"] = _one_of(fields, "auth_protocol", _AUTH_PROTOCOLS)
        user["auth_password"] = _required(fields, "password", f"security_level {level}")
    if level == "authPriv":
        user["priv_protocol"] = _one_of(fields, "priv_protocol", _PRIV_PROTOCOLS)
        user["priv_password"] = _required(fields, "priv_password", "security_level authPriv")

    return SnmpV3.from_fields(user)


def _one_of(fields: Fields, key: str, choices: tuple[str, ...]) -> str:
    """Return a field that must be one of the choices; the first choice is the default."""
    text = fields.text(key, choices[0])
    if text not in choices:
        raise fields.refused(key, "is none that exists", "use " + ", ".join(choices))

    return text


def _required(fields: Fields, key: str, reason: str) -> str:
    """Return a text that must not be empty.

    Raises ConfigError.
    """
    text = fields.text(key)
    if not text:
        raise errors.ConfigError(f"{fields.where}: {key} is missing; {reason} needs it")

    return text
