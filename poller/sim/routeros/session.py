"""One login session of a router: a sentence in, the bytes of the answer out. Knows no socket.

`closed` becomes true with the `!fatal` after which a router hangs up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from poller.sim import hardware, life
from poller.sim.fleet import USERNAME, Fault, SimDevice
from poller.sim.routeros import query, sentences, tables
from poller.sim.routeros.tables import Scene, Table

REFUSED = "invalid user name or password (6)"
_MISSING, _ARGUMENT = "0", "1"  # trap categories

Words = Iterable[str]


class Router:
    """A device as the RouterOS API sees it; its sessions share it."""

    __slots__ = ("chassis", "device", "life", "mac")

    def __init__(self, device: SimDevice) -> None:
        self.device = device
        self.chassis = hardware.chassis(device.model, device.variant)
        self.life = life.life(device.salt, device.fault is Fault.REBOOT)
        self.mac = hardware.first_mac(device.salt)

    def scene(self, now: float) -> Scene:
        return Scene(self.device.name, self.mac, self.chassis, self.life.waves(now))


class Session:
    def __init__(self, router: Router, challenge: bytes) -> None:
        self._router = router
        self._challenge = challenge  # sixteen octets for the login of old versions
        self.logged_in = False
        self.closed = False

    def answer(self, sentence: Sequence[bytes], now: float) -> bytes:
        """The complete reply to one command, every sentence of it with the command's tag."""
        command, *words = [word.decode("utf-8", "replace") for word in sentence]
        tag = [word for word in words if word.startswith(".tag=")][:1]
        reply = self._reply(command, words, now)
        return b"".join([sentences.encode([w.encode() for w in (*words, *tag)]) for words in reply])

    def _reply(self, command: str, words: list[str], now: float) -> list[Words]:
        if command == "/login":
            return self._login(_attributes(words))
        if not self.logged_in:
            return self._fatal("not logged in")
        if command == "/quit":
            return self._fatal("session terminated on request")
        path, _, verb = command.rpartition("/")
        table = tables.TABLES.get(path)
        if table is None:
            return _trap("no such command prefix", _MISSING)
        if verb not in ("print", "getall"):
            return _trap("no such command", _MISSING)
        return self._print(table, words, now)

    def _print(self, table: Table, words: list[str], now: float) -> list[Words]:
        scene = self._router.scene(now)
        attributes = _attributes(words)
        try:
            rows = _kept(table, scene, [word[1:] for word in words if word.startswith("?")])
        except query.BadQuery as error:
            return _trap(str(error), _ARGUMENT)
        if "count-only" in attributes:
            return [("!done", f"=ret={len(rows)}")]
        if not rows:
            return [("!empty",), ("!done",)] if scene.version >= (7, 18) else [("!done",)]
        columns = _columns(table, attributes.get(".proplist", ""))
        return [*(_row(columns, scene, row) for row in rows), ("!done",)]

    def _login(self, given: dict[str, str]) -> list[Words]:
        if "name" not in given:
            return [("!done", f"=ret={self._challenge.hex()}")]
        password = self._router.device.password
        proof = given.get("response")
        right = given.get("password", "") == password if proof is None else proof == self._proof(password)
        if not right or given["name"] != USERNAME:
            return [("!trap", f"=message={REFUSED}"), ("!done",)]
        self.logged_in = True
        return [("!done",)]

    def _proof(self, password: str) -> str:
        secret = b"\0" + password.encode() + self._challenge
        return "00" + hashlib.md5(secret, usedforsecurity=False).hexdigest()

    def _fatal(self, reason: str) -> list[Words]:
        self.closed = True
        return [("!fatal", reason)]


def _trap(message: str, category: str) -> list[Words]:
    return [("!trap", f"=category={category}", f"=message={message}"), ("!done",)]


def _attributes(words: Words) -> dict[str, str]:
    """`=name=value` words as a dictionary; a value may hold further equal signs."""
    pairs = (word[1:].partition("=") for word in words if word.startswith("="))
    return {name: value for name, _, value in pairs}


def _kept(table: Table, scene: Scene, queries: list[str]) -> list[object]:
    rows = table.rows(scene)
    return [row for row in rows if query.matches(queries, _lookup(table, scene, row))] if queries else list(rows)


def _lookup(table: Table, scene: Scene, row: object) -> query.Lookup:
    def value(name: str) -> str | None:
        column = table.columns.get(name)
        return column(scene, row) if column else None

    return value


def _columns(table: Table, proplist: str) -> list[tuple[str, tables.Value]]:
    if not proplist:
        return list(table.columns.items())
    return [(name, table.columns[name]) for name in proplist.split(",") if name in table.columns]


def _row(columns: list[tuple[str, tables.Value]], scene: Scene, row: object) -> Words:
    cells = [(name, column(scene, row)) for name, column in columns]
    return ("!re", *(f"={name}={value}" for name, value in cells if value is not None))
