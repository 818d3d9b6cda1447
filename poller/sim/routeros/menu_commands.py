"""What does a router answer to a command? The verbs of its menus: print, listen, monitor, add, set, remove."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from poller.sim.routeros import menu_plans, menus, query, reply_pieces
from poller.sim.routeros.menu_edits import Row
from poller.sim.routeros.menu_tables import Table, Watch
from poller.sim.routeros.reply_pieces import ARGUMENT, MISSING, Answer, Asked, Trap, Wait
from poller.sim.routeros.router import Router
from poller.sim.routeros.router_users import Policy

DENIED = "not enough permissions (9)"
LISTEN_SECONDS = 0.1  # how soon a listener hears of a change
MONITOR_SECONDS = 1.0

_PRINT = frozenset(
    {".proplist", "count-only", "detail", "stats", "follow", "follow-only", "interval"}
)
_WATCH = frozenset({".proplist", "once", "interval", ".id"})
_SECONDS = re.compile(r"([0-9]{1,5})(ms|s)?")


class Place(NamedTuple):
    """Where a command is given: on which router, by whom, and what time it is there."""

    router: Router
    policies: frozenset[Policy]
    now: Callable[[], float]


def answer(asked: Asked, place: Place) -> Answer:
    """Everything the router says to a command, in pieces; a refusal is an answer as well."""
    try:
        return _verb(asked, place)
    except Trap as trap:
        return reply_pieces.refused(asked, trap)
    except query.BadQuery as error:
        return reply_pieces.refused(asked, Trap(str(error), ARGUMENT))


def exists(asked: Asked, router: Router) -> bool:
    table = menus.find(asked.path, router.chassis)
    return table is not None and (asked.verb in _VERBS or asked.verb in table.watches)


def _verb(asked: Asked, place: Place) -> Answer:
    table = menus.find(asked.path, place.router.chassis)
    if table is None:
        raise _no_such_menu(asked.path, place.router)
    if asked.verb in table.watches:
        return _watch(asked, place, table, table.watches[asked.verb])
    if asked.verb not in _VERBS or (asked.verb in _WRITING and not table.accepts):
        raise Trap("no such command", MISSING)
    return _VERBS[asked.verb](asked, place, table)


def _no_such_menu(path: str, router: Router) -> Trap:
    """Version 7 says it twice; the first time it names the first part of the path that is not there."""
    if router.chassis.version < (7,):
        return Trap("no such command prefix", MISSING)
    parts = path.strip("/").split("/")
    known = [n for n in range(len(parts)) if menus.has("/" + "/".join(parts[:n]), router.chassis)]
    return Trap(
        f"no such command or directory ({parts[known[-1]]})", MISSING, "no such command prefix"
    )


def _may(place: Place, policy: Policy) -> None:
    if policy not in place.policies:
        raise Trap(DENIED)


def _know(asked: Asked, *known: frozenset[str] | Mapping[str, Any]) -> None:
    for name in asked.attributes:
        if not any(name in names for names in known):
            raise Trap(f"unknown parameter {name}")


# print and listen


def _print(asked: Asked, place: Place, table: Table) -> Answer:
    _may(place, Policy.READ)
    _know(asked, _PRINT, table.flags)
    query.check(asked.queries)
    if asked.says("follow") or asked.says("follow-only"):
        return _follow(asked, place, table, first=not asked.says("follow-only"))
    if "interval" in asked.attributes:
        return _repeat(asked, place, table, _seconds(asked.attributes["interval"]))
    if asked.says("count-only"):
        return reply_pieces.done(asked, str(_count(asked, place, table)))
    return _printed(asked, place, table)


def _printed(asked: Asked, place: Place, table: Table) -> Answer:
    empty = True
    for piece in _rows(asked, place, table):
        empty = False
        yield piece
    if empty and place.router.chassis.version >= (7, 18):
        yield reply_pieces.say(asked.tail, "!empty")
    yield reply_pieces.say(asked.tail, "!done")


def _rows(asked: Asked, place: Place, table: Table) -> Answer:
    scene, tail = place.router.scene(place.now()), asked.tail
    pick = menu_plans.picker(table, scene, asked.queries, filter(asked.says, asked.attributes))
    plan = menu_plans.of_table(
        table, scene.chassis, asked.attributes.get(".proplist", ""), asked.says("stats")
    )
    yield from plan.pieces(scene, tail, pick)
    for row in _added(asked, place, table):
        yield reply_pieces.row(tail, _shown(asked, row))


def _count(asked: Asked, place: Place, table: Table) -> int:
    scene = place.router.scene(place.now())
    pick = menu_plans.picker(table, scene, asked.queries, filter(asked.says, asked.attributes))
    return menu_plans.count(table, scene, pick) + len(_added(asked, place, table))


def _added(asked: Asked, place: Place, table: Table) -> Sequence[Row]:
    rows = place.router.changes.rows(table.path) if table.accepts else ()
    return [row for row in rows if query.matches(asked.queries, row.get)]


def _shown(asked: Asked, row: Row) -> Row:
    names = [name for name in asked.attributes.get(".proplist", "").split(",") if name]
    return {name: row[name] for name in names if name in row} if names else row


def _repeat(asked: Asked, place: Place, table: Table, seconds: float) -> Answer:
    while True:
        yield from _rows(asked, place, table)
        yield Wait(seconds)


def _listen(asked: Asked, place: Place, table: Table) -> Answer:
    _may(place, Policy.READ)
    _know(asked, frozenset({".proplist"}))
    query.check(asked.queries)
    return _follow(asked, place, table, first=False)


def _follow(asked: Asked, place: Place, table: Table, first: bool) -> Answer:
    heard = place.router.changes.latest
    if first:
        yield from _rows(asked, place, table)
    while True:
        for row in place.router.changes.news(table.path, heard):
            if ".dead" in row or query.matches(asked.queries, row.get):
                yield reply_pieces.row(asked.tail, row if ".dead" in row else _shown(asked, row))
        heard = place.router.changes.latest
        yield Wait(LISTEN_SECONDS)


# monitor


def _watch(asked: Asked, place: Place, table: Table, watch: Watch) -> Answer:
    _may(place, Policy.TEST)
    _know(asked, _WATCH, frozenset({watch.items}))
    items = _items(asked, place, table, watch)
    once = asked.says("once")
    every = (
        _seconds(asked.attributes["interval"])
        if "interval" in asked.attributes
        else MONITOR_SECONDS
    )
    plan = menu_plans.of_watch(
        table, watch, place.router.chassis, items, asked.attributes.get(".proplist", "")
    )
    return _watched(asked, place, plan, None if once else every)


def _watched(asked: Asked, place: Place, plan: menu_plans.Plan, every: float | None) -> Answer:
    while True:
        yield from plan.pieces(place.router.scene(place.now()), asked.tail)
        if every is None:
            break
        yield Wait(every)
    yield reply_pieces.say(asked.tail, "!done")


def _items(asked: Asked, place: Place, table: Table, watch: Watch) -> tuple[int, ...]:
    """Items by their place in the list, their id or their name, separated by commas."""
    named = asked.attributes.get(watch.items) or asked.attributes.get(".id")
    if not named:
        raise Trap(f"missing value for argument {watch.items}", ARGUMENT)
    if watch.items == "number" and "," in named:
        raise Trap(
            "ambiguous value of number, more than one possible value matches input", ARGUMENT
        )
    places = menu_plans.places(table, place.router.chassis)
    try:
        return tuple(places[name.strip()] for name in named.split(","))
    except KeyError:
        raise Trap("no such item", MISSING) from None


def _seconds(text: str) -> float:
    found = _SECONDS.fullmatch(text)
    if not found:
        raise Trap("invalid value for argument interval", ARGUMENT)
    return max(0.1, int(found[1]) / (1000 if found[2] == "ms" else 1))


# add, set, remove


def _add(asked: Asked, place: Place, table: Table) -> Answer:
    _may(place, Policy.WRITE)
    _know(asked, table.accepts)
    for name, required in table.accepts.items():
        if required and not asked.attributes.get(name):
            raise Trap(f"missing value for argument {name}", ARGUMENT)
    _check(asked, place)
    if place.router.changes.full(table.path):
        raise Trap("failure: the simulator keeps no more rows of this menu")
    return reply_pieces.done(asked, place.router.changes.add(table.path, asked.attributes))


def _set(asked: Asked, place: Place, table: Table) -> Answer:
    _may(place, Policy.WRITE)
    _know(asked, table.accepts, frozenset({".id"}))
    _check(asked, place)
    given = {name: value for name, value in asked.attributes.items() if name != ".id"}
    for number in _numbers(asked, place, table):
        place.router.changes.set(table.path, number, given)
    return reply_pieces.done(asked)


def _remove(asked: Asked, place: Place, table: Table) -> Answer:
    _may(place, Policy.WRITE)
    _know(asked, frozenset({".id"}))
    for number in _numbers(asked, place, table):
        place.router.changes.remove(table.path, number)
    return reply_pieces.done(asked)


def _check(asked: Asked, place: Place) -> None:
    ports = {port.name for port in place.router.chassis.ports}
    if asked.attributes.get("interface", next(iter(ports))) not in ports:
        raise Trap("input does not match any value of interface", ARGUMENT)


def _numbers(asked: Asked, place: Place, table: Table) -> list[str]:
    """The ids that are meant; all of them must be there, and be a client's own."""
    numbers = [number for number in asked.attributes.get(".id", "").split(",") if number]
    if not numbers:
        raise Trap("missing =.id=", ARGUMENT)
    own = {row[".id"] for row in place.router.changes.rows(table.path)}
    if not own.issuperset(numbers):
        raise Trap("no such item", MISSING)
    return numbers


_WRITING = frozenset({"add", "set", "remove"})
_VERBS: Mapping[str, Callable[[Asked, Place, Table], Answer]] = {
    "print": _print,
    "getall": _print,
    "listen": _listen,
    "add": _add,
    "set": _set,
    "remove": _remove,
}
