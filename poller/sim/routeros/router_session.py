"""One login session of a router: sentences in, pieces of answers out. Knows no socket and no clock.

Commands with tags are answered side by side, a piece of each in turn; those without one after the other. `closed`
becomes true with the `!fatal` after which a router hangs up.
"""

from __future__ import annotations

import collections
import hashlib
from collections.abc import Sequence

from poller.sim.routeros import menu_commands, reply_pieces
from poller.sim.routeros.menu_commands import Place
from poller.sim.routeros.menu_plans import PIECE
from poller.sim.routeros.reply_pieces import INTERRUPTED, Answer, Asked, Trap, Wait
from poller.sim.routeros.router import Router
from poller.sim.routeros.router_users import USERS, Policy

REFUSED = "invalid user name or password (6)"
REFUSED_BEFORE_6_43 = "cannot log in"
MOST_RUNNING = 16  # commands at a time; the others wait
MOST_STRANGE = 16  # sentences before a login
NEVER = float("inf")
_STEPS = (
    64  # of a turn, so that a client with thousands of commands does not keep the others waiting
)


class _Running:
    __slots__ = ("answer", "asked", "ready_at")

    def __init__(self, asked: Asked, answer: Answer) -> None:
        self.asked = asked
        self.answer = answer
        self.ready_at = 0.0


class Session:
    def __init__(self, router: Router, challenge: bytes) -> None:
        self.router = router
        self.closed = False
        self._challenge = challenge  # sixteen octets for the login of old versions
        self._policies: frozenset[Policy] | None = None  # None: nobody is logged in
        self._strange = 0
        self._now = self._at = 0.0
        self._waiting: collections.deque[Asked] = collections.deque()
        self._running: list[_Running] = []

    @property
    def logged_in(self) -> bool:
        return self._policies is not None

    @property
    def ready_at(self) -> float:
        """When there is something to say, on the clock `speak` is given; NEVER when a command must come first."""
        if self._waiting and self._may_begin(self._waiting[0], self._at):
            return self._at
        return min((each.ready_at for each in self._running), default=NEVER)

    def hear(self, sentence: Sequence[bytes]) -> None:
        """A command; what there is to say to it comes from `speak`. Cancelling cannot wait."""
        asked = reply_pieces.take_apart(sentence)
        if asked.command == "/cancel" and self.logged_in:
            self._waiting.appendleft(asked)
        else:
            self._waiting.append(asked)

    def speak(self, now: float, at: float = 0.0) -> bytes:
        """What there is to say by now, or the next part of it if it is much.

        `now` is the router's time, of which its values are a function; `at` is any clock that runs, for waits.
        """
        self._now, self._at = now, at
        said: list[bytes] = []
        size = 0
        for _ in range(_STEPS):
            self._begin(at)
            ready = next((each for each in self._running if each.ready_at <= at), None)
            if ready is None or size >= PIECE:
                break
            said.append(self._step(ready, at))
            size += len(said[-1])
        return b"".join(said)

    def _begin(self, at: float) -> None:
        while self._waiting and not self.closed:
            asked = self._waiting[0]
            if not self._may_begin(asked, at):
                return
            self._waiting.popleft()
            self._running.append(_Running(asked, self._answer(asked)))

    def _may_begin(self, asked: Asked, at: float) -> bool:
        """Not while one of the same tag, or one without as well, is still speaking."""
        if asked.command == "/cancel":
            return True
        if len(self._running) >= MOST_RUNNING:
            return False
        return not any(
            each.asked.tag == asked.tag and each.ready_at <= at for each in self._running
        )

    def _step(self, running: _Running, at: float) -> bytes:
        """A piece of one answer; if there is more of it, it queues up again behind the others."""
        self._running.remove(running)
        piece = next(running.answer, None)
        if piece is None:
            return b""
        self._running.append(running)
        if isinstance(piece, Wait):
            running.ready_at = at + piece.seconds
            return b""
        self.router.said += piece[1]
        return piece[0]

    def _answer(self, asked: Asked) -> Answer:
        self._count(asked)
        if asked.command == "/login":
            return self._login(asked)
        if self._policies is None:
            return self._fatal(asked, "not logged in")
        if asked.command == "/quit":
            return self._fatal(asked, "session terminated on request")
        if asked.command == "/cancel":
            return self._cancel(asked)
        return menu_commands.answer(asked, Place(self.router, self._policies, lambda: self._now))

    def _count(self, asked: Asked) -> None:
        own = asked.command in ("/login", "/quit", "/cancel")
        name = asked.command if own or menu_commands.exists(asked, self.router) else "unknown"
        self.router.commands[name] += 1

    def _cancel(self, asked: Asked) -> Answer:
        """Of one command, or of all: they are interrupted, and end after the answer to the cancelling one."""
        tag = asked.attributes.get("tag")
        over = [each for each in self._running if tag is None or each.asked.tag == tag]
        self._running = [each for each in self._running if each not in over]
        for each in over:
            yield reply_pieces.say(
                each.asked.tail, "!trap", f"=category={INTERRUPTED}", "=message=interrupted"
            )
        yield reply_pieces.say(asked.tail, "!done")
        for each in over:
            yield reply_pieces.say(each.asked.tail, "!done")

    def _login(self, asked: Asked) -> Answer:
        self._strange += 1
        if self._strange > MOST_STRANGE:
            return self._fatal(asked, "too many commands before login")
        given = asked.attributes
        old = self.router.chassis.version < (6, 43)
        if "name" not in given or (old and "response" not in given):
            return reply_pieces.done(asked, self._challenge.hex())
        if given["name"] not in USERS or not self._proven(
            given.get("password", ""), given.get("response")
        ):
            return reply_pieces.refused(asked, Trap(REFUSED_BEFORE_6_43 if old else REFUSED))
        self._policies = USERS[given["name"]]
        self.router.logins += 1
        return reply_pieces.done(asked)

    def _proven(self, given: str, response: str | None) -> bool:
        password = self.router.device.password
        if response is None:
            return given == password
        secret = b"\0" + password.encode() + self._challenge
        return response == "00" + hashlib.md5(secret, usedforsecurity=False).hexdigest()

    def _fatal(self, asked: Asked, reason: str) -> Answer:
        self.closed = True
        self._waiting.clear()
        self._running.clear()
        return iter([reply_pieces.say(asked.tail, "!fatal", reason)])
