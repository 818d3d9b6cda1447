"""SNMPv3 users on the gufo engine: keys are made once, the agent's engine id is remembered."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import gufo.snmp
from gufo.snmp import _fast
from gufo.snmp.user import KeyType
from pydantic import SecretStr

from poller.collectors.credentials import SnmpV3
from poller.collectors.snmp import gufo_engine
from poller.collectors.snmp.engine import Ask
from poller.collectors.snmp.gufo_engine import GufoLink

_AUTH = {
    "MD5": gufo.snmp.Md5Key,
    "SHA": gufo.snmp.Sha1Key,
    "SHA224": gufo.snmp.Sha224Key,
    "SHA256": gufo.snmp.Sha256Key,
    "SHA384": gufo.snmp.Sha384Key,
    "SHA512": gufo.snmp.Sha512Key,
}
_PRIV = {
    "DES": gufo.snmp.DesKey,
    "AES": gufo.snmp.Aes128Key,
    "AES192": gufo.snmp.Aes192Key,
    "AES192C": gufo.snmp.Aes192Key,
    "AES256": gufo.snmp.Aes256Key,
    "AES256C": gufo.snmp.Aes256Key,
}


_KEPT_MASTER_KEYS = 1024
_master_keys: dict[tuple[str, bytes], bytes] = {}


@dataclass(slots=True, repr=False)
class Usm:
    """What is remembered of a v3 agent between polls. Never printed: it holds keys."""

    user: gufo.snmp.User
    engine_id: bytes = b""

    def __repr__(self) -> str:
        return "<Usm>"


def remember(credential: SnmpV3) -> Usm:
    """The user with its keys; making those from passwords takes a millisecond each."""
    if credential.auth_password is None:
        return Usm(gufo.snmp.User(credential.username))
    auth = _AUTH[credential.auth_protocol]
    auth_key = auth(_master_key(auth, credential.auth_password), KeyType.Master)
    priv_key = None
    if credential.priv_password is not None:
        # Privacy keys are derived with the authentication protocol, too (RFC 3414, 2.6).
        priv_key = _PRIV[credential.priv_protocol](_master_key(auth, credential.priv_password), KeyType.Master)
    cisco = credential.priv_protocol.endswith("C")
    expansion = gufo.snmp.KeyExpansion.Cisco if cisco else gufo.snmp.KeyExpansion.Blumenthal
    return Usm(gufo.snmp.User(credential.username, auth_key=auth_key, priv_key=priv_key, key_expansion=expansion))


def connect(address: str, port: int, usm: Usm, wary: bool = False) -> UsmLink:
    """A link for SNMPv3. Opens a socket, sends nothing. `address` must be an IP literal."""
    user = usm.user if usm.engine_id else gufo.snmp.User.default()
    agent = f"{address} port {port}"
    try:
        sock = _fast.SnmpV3ClientSocket(
            gufo_engine.endpoint(address, port), usm.engine_id, user.name, *_keys(user), 0, 0, 0, 0
        )
    except gufo_engine.EXPECTED as error:
        raise gufo_engine.translate(error, agent) from None
    return UsmLink(sock, agent, usm, ipv6=":" in address, wary=wary)


class UsmLink(GufoLink):
    """A link that introduces itself first. The agent's error status stays hidden: it is encrypted."""

    def __init__(self, sock: Any, agent: str, usm: Usm, *, ipv6: bool, wary: bool) -> None:
        super().__init__(sock, agent, ipv6=ipv6, wary=wary)
        self._usm = usm

    async def begin(self, ask: Ask) -> None:
        """Learn the agent's engine id (once) and its clock (every poll): v3 refuses what is out of time."""
        if self._usm.engine_id:  # another engine would keep silent: one try shows it
            await ask(self._refresh, tries=1)
        else:
            await ask(self._refresh)
            self._sock.set_keys(self._usm.user.name, *_keys(self._usm.user))
            self._usm.engine_id = self._sock.get_engine_id()
            if self._usm.user.require_auth():
                await ask(self._refresh)

    async def _refresh(self, _: int, wait_s: float) -> None:
        await self.exchange(self._sock.send_refresh, None, self._sock.recv_refresh, None, wait_s)


def _keys(user: gufo.snmp.User) -> tuple[int, bytes, int, bytes]:
    return user.get_auth_alg(), user.get_auth_key(), user.get_priv_alg(), user.get_priv_key()


def _master_key(auth: type[gufo.snmp.BaseAuthKey], secret: SecretStr) -> bytes:
    """A megabyte of hashing by design, so a fleet that shares a password does it once; keyed by a digest of it."""
    octets = secret.get_secret_value().encode()
    name = (auth.__name__, hashlib.sha256(octets).digest())
    if name not in _master_keys:
        if len(_master_keys) >= _KEPT_MASTER_KEYS:
            _master_keys.clear()
        _master_keys[name] = auth.get_master_key(octets)
    return _master_keys[name]
