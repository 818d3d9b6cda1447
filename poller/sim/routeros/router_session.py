"""One API session with a router: sentences in, answers out. Uses no socket and no clock.

Commands with tags are answered concurrently, piece by piece; commands without a tag in order.
`closed` is true after a `!fatal`, when a router closes the connection.
"""

from __future__ import annotations

import collections
import hashlib
from collections.abc import Sequence

from poller.sim.routeros import menu_commands, reply_pieces
from poller.sim.routeros.menu_commands import Context
from poller.sim.routeros.menu_plans import PIECE
from poller.sim.routeros.reply_pieces import INTERRUPTED, Answer, Request, Trap, Wait
from poller.sim.routeros.router import Router
from poller.sim.routeros.router_users import USERS, Policy

REFUSED = "invalid user name or password (6)"
REFUSED_BEFORE_6_43 = "cannot log in"
MAX_RUNNING = 16  # commands at a time; later commands wait
MAX_LOGINS = 16  # login attempts of a session
NEVER = float("inf")
_STEPS = 64  # per call of `next_output`: a client with thousands of commands delays no other


class _Running:
    """A command under way, and the rest of its answer."""

    __slots__ = ("answer", "ready_at", "request")

    def __init__(self, request: Request, answer: Answer) -> None:
        self.request = request
        self.answer = answer
        self.ready_at = 0.0


class Session:
    """The login, the waiting commands and the running commands of one client."""

    def __init__(self, router: Router, challenge: bytes) -> None:
        self.router = router
        self.closed = False
        self._challenge = challenge  # sixteen octets, for the login of versions before 6.43
        self._policies: frozenset[Policy] | None = None  # None before the login
        self._login_attempts = 0
        self._now = self._at = 0.0
        self._waiting: collections.deque[Request] = collections.deque()
        self._running: list[_Running] = []

    @property
    def logged_in(self) -> bool:
        return self._policies is not None

    @property
    def ready_at(self) -> float:
        """The instant of the next output on the clock `at`; NEVER if no command is under way."""
        if self._waiting and self._can_start(self._waiting[0], self._at):
            return self._at
        return min((each.ready_at for each in self._running), default=NEVER)

    def receive(self, sentence: Sequence[bytes]) -> None:
        """Accept a command; `next_output` returns its answer. A `/cancel` goes first."""
        request = reply_pieces.parse(sentence)
        if request.command == "/cancel" and self.logged_in:
            self._waiting.appendleft(request)
        else:
            self._waiting.append(request)

    def next_output(self, now: float, at: float = 0.0) -> bytes:
        """Return the output that is ready, or the next part of a long output.

        `now` is the router's time, which decides its values. `at` is a running clock, for waits.
        """
        self._now = now
        self._at = at
        output: list[bytes] = []
        size = 0
        for _ in range(_STEPS):
            self._start_waiting(at)
            ready = next((each for each in self._running if each.ready_at <= at), None)
            if ready is None or size >= PIECE:
                break
            output.append(self._step(ready, at))
            size += len(output[-1])
        return b"".join(output)

    def _start_waiting(self, at: float) -> None:
        while self._waiting and not self.closed:
            request = self._waiting[0]
            if not self._can_start(request, at):
                return
            self._waiting.popleft()
            self._running.append(_Running(request, self._answer(request)))

    def _can_start(self, request: Request, at: float) -> bool:
        """Return whether no running command with the same tag (or none) has output."""
        if request.command == "/cancel":
            return True
        if len(self._running) >= MAX_RUNNING:
            return False
        return not any(
            each.request.tag == request.tag and each.ready_at <= at for each in self._running
        )

    def _step(self, running: _Running, at: float) -> bytes:
        """Return the next piece of an answer, and queue the command behind the others."""
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

    def _answer(self, request: Request) -> Answer:
        self._count(request)
        if request.command == "/login":
            return self._login(request)
        if self._policies is None:
            return self._fatal(request, "not logged in")
        if request.command == "/quit":
            return self._fatal(request, "session terminated on request")
        if request.command == "/cancel":
            return self._cancel(request)
        return menu_commands.answer(
            request, Context(self.router, self._policies, lambda: self._now)
        )

    def _count(self, request: Request) -> None:
        own = request.command in ("/login", "/quit", "/cancel")
        name = request.command if own or menu_commands.exists(request, self.router) else "unknown"
        self.router.commands[name] += 1

    def _cancel(self, request: Request) -> Answer:
        """Interrupt one command or all. Their `!done` follows that of the `/cancel`."""
        tag = request.attributes.get("tag")
        cancelled = [each for each in self._running if tag is None or each.request.tag == tag]
        self._running = [each for each in self._running if each not in cancelled]
        for each in cancelled:
            yield reply_pieces.sentence(
                each.request.tail, "!trap", f"=category={INTERRUPTED}", "=message=interrupted"
            )
        yield reply_pieces.sentence(request.tail, "!done")
        for each in cancelled:
            yield reply_pieces.sentence(each.request.tail, "!done")

    def _login(self, request: Request) -> Answer:
        self._login_attempts += 1
        if self._login_attempts > MAX_LOGINS:
            return self._fatal(request, "too many commands before login")
        fields = request.attributes
        old = self.router.chassis.version < (6, 43)
        if "name" not in fields or (old and "response" not in fields):
            return reply_pieces.done(request, self._challenge.hex())
        is_proven = self._is_proven(fields.get("password", ""), fields.get("response"))
        if fields["name"] not in USERS or not is_proven:
            return reply_pieces.refused(request, Trap(REFUSED_BEFORE_6_43 if old else REFUSED))
        self._policies = USERS[fields["name"]]
        self.router.logins += 1
        return reply_pieces.done(request)

    def _is_proven(self, sent_password: str, response: str | None) -> bool:
        password = self.router.device.password
        if response is None:
            return sent_password == password
        secret = b"\0" + password.encode() + self._challenge
        return response == "00" + hashlib.md5(secret, usedforsecurity=False).hexdigest()

    def _fatal(self, request: Request, reason: str) -> Answer:
        self.closed = True
        self._waiting.clear()
        self._running.clear()
        return iter([reply_pieces.sentence(request.tail, "!fatal", reason)])
