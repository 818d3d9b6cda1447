"""The commands of a menu: print, listen, monitor, add, set, remove."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from poller.sim.routeros import menu_plans, menus, query, reply_pieces
from poller.sim.routeros.menu_edits import Row
from poller.sim.routeros.menu_tables import Table, Watch
from poller.sim.routeros.reply_pieces import ARGUMENT, MISSING, Answer, Request, Trap, Wait
from poller.sim.routeros.router import Router
from poller.sim.routeros.router_users import Policy

DENIED = "not enough permissions (9)"
LISTEN_SECONDS = 0.1  # the interval at which a listener checks for changes
MONITOR_SECONDS = 1.0

_PRINT = frozenset(
    {".proplist", "count-only", "detail", "stats", "follow", "follow-only", "interval"}
)
_WATCH = frozenset({".proplist", "once", "interval", ".id"})
_SECONDS = re.compile(r"([0-9]{1,5})(ms|s)?")


class Context(NamedTuple):
    """The context of a command: the router, the policies of the user, and the clock."""

    router: Router
    policies: frozenset[Policy]
    now: Callable[[], float]


def answer(request: Request, context: Context) -> Answer:
    """Return the answer to a command in pieces; a refusal is an answer, too."""
    try:
        return _verb(request, context)
    except Trap as trap:
        return reply_pieces.refused(request, trap)
    except query.BadQuery as error:
        return reply_pieces.refused(request, Trap(str(error), ARGUMENT))


def exists(request: Request, router: Router) -> bool:
    table = menus.find(request.path, router.chassis)
    return table is not None and (request.verb in _VERBS or request.verb in table.watches)


def _verb(request: Request, context: Context) -> Answer:
    table = menus.find(request.path, context.router.chassis)
    if table is None:
        raise _no_such_menu(request.path, context.router)
    if request.verb in table.watches:
        return _watch(request, context, table, table.watches[request.verb])
    if request.verb not in _VERBS or (request.verb in _WRITING and not table.accepts):
        raise Trap("no such command", MISSING)
    return _VERBS[request.verb](request, context, table)


def _no_such_menu(path: str, router: Router) -> Trap:
    """Return the refusal of an unknown menu. Version 7 also names the missing part of the path."""
    if router.chassis.version < (7,):
        return Trap("no such command prefix", MISSING)
    parts = path.strip("/").split("/")
    existing = [
        n for n in range(len(parts)) if menus.has("/" + "/".join(parts[:n]), router.chassis)
    ]
    return Trap(
        f"no such command or directory ({parts[existing[-1]]})", MISSING, "no such command prefix"
    )


def _require(context: Context, policy: Policy) -> None:
    if policy not in context.policies:
        raise Trap(DENIED)


def _check_attributes(request: Request, *allowed: frozenset[str] | Mapping[str, Any]) -> None:
    for name in request.attributes:
        if not any(name in names for names in allowed):
            raise Trap(f"unknown parameter {name}")


# print and listen


def _print(request: Request, context: Context, table: Table) -> Answer:
    _require(context, Policy.READ)
    _check_attributes(request, _PRINT, table.flags)
    query.check(request.queries)
    if request.is_set("follow") or request.is_set("follow-only"):
        return _follow(request, context, table, first=not request.is_set("follow-only"))
    if "interval" in request.attributes:
        return _repeat(request, context, table, _seconds(request.attributes["interval"]))
    if request.is_set("count-only"):
        return reply_pieces.done(request, str(_count(request, context, table)))
    return _printed(request, context, table)


def _printed(request: Request, context: Context, table: Table) -> Answer:
    empty = True
    for piece in _rows(request, context, table):
        empty = False
        yield piece
    if empty and context.router.chassis.version >= (7, 18):
        yield reply_pieces.sentence(request.tail, "!empty")
    yield reply_pieces.sentence(request.tail, "!done")


def _rows(request: Request, context: Context, table: Table) -> Answer:
    scene, tail = context.router.scene(context.now()), request.tail
    pick = menu_plans.picker(
        table, scene, request.queries, filter(request.is_set, request.attributes)
    )
    plan = menu_plans.of_table(
        table, scene.chassis, request.attributes.get(".proplist", ""), request.is_set("stats")
    )
    yield from plan.pieces(scene, tail, pick)
    for row in _added(request, context, table):
        yield reply_pieces.row(tail, _shown(request, row))


def _count(request: Request, context: Context, table: Table) -> int:
    scene = context.router.scene(context.now())
    pick = menu_plans.picker(
        table, scene, request.queries, filter(request.is_set, request.attributes)
    )
    return menu_plans.count(table, scene, pick) + len(_added(request, context, table))


def _added(request: Request, context: Context, table: Table) -> Sequence[Row]:
    rows = context.router.changes.rows(table.path) if table.accepts else ()
    return [row for row in rows if query.matches(request.queries, row.get)]


def _shown(request: Request, row: Row) -> Row:
    names = [name for name in request.attributes.get(".proplist", "").split(",") if name]
    return {name: row[name] for name in names if name in row} if names else row


def _repeat(request: Request, context: Context, table: Table, seconds: float) -> Answer:
    while True:
        yield from _rows(request, context, table)
        yield Wait(seconds)


def _listen(request: Request, context: Context, table: Table) -> Answer:
    _require(context, Policy.READ)
    _check_attributes(request, frozenset({".proplist"}))
    query.check(request.queries)
    return _follow(request, context, table, first=False)


def _follow(request: Request, context: Context, table: Table, first: bool) -> Answer:
    logged = context.router.changes.latest
    if first:
        yield from _rows(request, context, table)
    while True:
        for row in context.router.changes.since(table.path, logged):
            if ".dead" in row or query.matches(request.queries, row.get):
                cells = row if ".dead" in row else _shown(request, row)
                yield reply_pieces.row(request.tail, cells)
        logged = context.router.changes.latest
        yield Wait(LISTEN_SECONDS)


# monitor


def _watch(request: Request, context: Context, table: Table, watch: Watch) -> Answer:
    _require(context, Policy.TEST)
    _check_attributes(request, _WATCH, frozenset({watch.items}))
    items = _items(request, context, table, watch)
    once = request.is_set("once")
    every = MONITOR_SECONDS
    if "interval" in request.attributes:
        every = _seconds(request.attributes["interval"])
    plan = menu_plans.of_watch(
        table, watch, context.router.chassis, items, request.attributes.get(".proplist", "")
    )
    return _watched(request, context, plan, None if once else every)


def _watched(
    request: Request, context: Context, plan: menu_plans.Plan, every: float | None
) -> Answer:
    while True:
        yield from plan.pieces(context.router.scene(context.now()), request.tail)
        if every is None:
            break
        yield Wait(every)
    yield reply_pieces.sentence(request.tail, "!done")


def _items(request: Request, context: Context, table: Table, watch: Watch) -> tuple[int, ...]:
    """Return the positions of items that are named by position, id or name, separated by commas."""
    named = request.attributes.get(watch.items) or request.attributes.get(".id")
    if not named:
        raise Trap(f"missing value for argument {watch.items}", ARGUMENT)
    if watch.items == "number" and "," in named:
        raise Trap(
            "ambiguous value of number, more than one possible value matches input", ARGUMENT
        )
    positions = menu_plans.positions(table, context.router.chassis)
    try:
        return tuple(positions[name.strip()] for name in named.split(","))
    except KeyError:
        raise Trap("no such item", MISSING) from None


def _seconds(text: str) -> float:
    match = _SECONDS.fullmatch(text)
    if not match:
        raise Trap("invalid value for argument interval", ARGUMENT)
    per_second = 1000 if match[2] == "ms" else 1
    return max(0.1, int(match[1]) / per_second)


# add, set, remove


def _add(request: Request, context: Context, table: Table) -> Answer:
    _require(context, Policy.WRITE)
    _check_attributes(request, table.accepts)
    for name, required in table.accepts.items():
        if required and not request.attributes.get(name):
            raise Trap(f"missing value for argument {name}", ARGUMENT)
    _check(request, context)
    if context.router.changes.full(table.path):
        raise Trap("failure: the simulator stores no more rows of this menu")
    return reply_pieces.done(request, context.router.changes.add(table.path, request.attributes))


def _set(request: Request, context: Context, table: Table) -> Answer:
    _require(context, Policy.WRITE)
    _check_attributes(request, table.accepts, frozenset({".id"}))
    _check(request, context)
    values = {name: value for name, value in request.attributes.items() if name != ".id"}
    for number in _numbers(request, context, table):
        context.router.changes.set(table.path, number, values)
    return reply_pieces.done(request)


def _remove(request: Request, context: Context, table: Table) -> Answer:
    _require(context, Policy.WRITE)
    _check_attributes(request, frozenset({".id"}))
    for number in _numbers(request, context, table):
        context.router.changes.remove(table.path, number)
    return reply_pieces.done(request)


def _check(request: Request, context: Context) -> None:
    ports = {port.name for port in context.router.chassis.ports}
    if request.attributes.get("interface", next(iter(ports))) not in ports:
        raise Trap("input does not match any value of interface", ARGUMENT)


def _numbers(request: Request, context: Context, table: Table) -> list[str]:
    """Return the ids in `.id`. Raises Trap if a row is missing or was not added by a client."""
    numbers = [number for number in request.attributes.get(".id", "").split(",") if number]
    if not numbers:
        raise Trap("missing =.id=", ARGUMENT)
    own = {row[".id"] for row in context.router.changes.rows(table.path)}
    if not own.issuperset(numbers):
        raise Trap("no such item", MISSING)
    return numbers


_WRITING = frozenset({"add", "set", "remove"})
_VERBS: Mapping[str, Callable[[Request, Context, Table], Answer]] = {
    "print": _print,
    "getall": _print,
    "listen": _listen,
    "add": _add,
    "set": _set,
    "remove": _remove,
}
