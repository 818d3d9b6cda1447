"""Collectors are loaded by entry point; a broken one is named and affects no other."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pydantic
import pytest
from pydantic import SecretStr

from poller import errors
from poller.collectors import api, registry
from poller.collectors.credentials import Credential, Login, Token


class Good:
    name = "good"
    api_version = 1
    Options = api.Options
    credentials = ()

    async def collect(self, poll: api.Poll) -> Any:
        yield api.Reading("one", 1.0)


class WrongName(Good):
    name = "other"


class Newer(Good):
    name = "newer"
    api_version = 99


class NoCollect:
    name = "empty"
    api_version = 1


def explodes() -> Any:
    raise RuntimeError("cannot be made")


def leaves() -> Any:
    raise SystemExit(1)


def needs_an_extra() -> Any:
    raise errors.ConfigError("it needs acme", hint="pip install acme")


def points(**things: Any) -> list[Any]:
    class Loaded:
        def __init__(self, name: str, thing: Any) -> None:
            self.name, self._thing, self.dist, self.group = name, thing, None, registry.GROUP

        def load(self) -> Any:
            return self._thing

    return [Loaded(name, thing) for name, thing in things.items()]


def test_the_built_in_collectors_are_there() -> None:
    """Built-ins are loaded through entry points, like plugins."""
    found = registry.load()
    assert {"snmp", "routeros", "ping", "http"} <= set(found.collectors)
    assert found.distributions["snmp"].startswith("poller ")


@pytest.mark.parametrize(
    "models", [None, [Token], Token, ("token",), (Token(token="x"),), (object,)]
)
def test_credentials_that_are_no_models_are_refused_at_load(
    monkeypatch: pytest.MonkeyPatch, models: object
) -> None:
    """At a poll they would be the trouble of its whole batch."""
    monkeypatch.setattr(Good, "credentials", models)
    [broken] = registry.load(points(good=Good)).broken
    assert broken.reason == "its credentials are not a tuple of credential models"


class Nameless(Credential):
    enable: SecretStr


class Enable(Login):
    """Meant to be a kind of its own, and is that of all logins."""

    enable: SecretStr


class Pin(Credential):
    kind = "pin"
    pin: SecretStr


class OtherPin(Credential):
    kind = "pin"
    number: SecretStr


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Nameless, "the kind of its credential model Nameless is missing"),
        (Enable, 'its credential model Enable has the kind "login", which another model has'),
        (OtherPin, 'its credential model OtherPin has the kind "pin", which another model has'),
    ],
)
def test_a_kind_of_credentials_belongs_to_one_model(model: type[Credential], reason: str) -> None:
    """Otherwise a plugin could read credentials stored for other collectors."""

    class First(Good):
        name = "first"
        credentials = (Pin, Login)

    class Second(Good):
        name = "second"
        credentials = (model,)

    found = registry.load(points(first=First, second=Second))
    assert set(found.collectors) == {"first"}
    [broken] = found.broken
    assert (broken.reason, broken.state) == (reason, "breaks the contract")
    assert f'kind = "..." in {model.__name__}' in broken.hint


def test_collectors_may_share_a_model() -> None:
    class First(Good):
        name = "first"
        credentials = (Pin,)

    class Second(First):
        name = "second"

    assert registry.load(points(first=First, second=Second)).broken == ()


def test_broken_ones_are_named_with_their_reason_and_the_good_one_works() -> None:
    found = registry.load(
        points(
            good=Good,
            odd=WrongName,
            newer=Newer,
            empty=NoCollect,
            bang=explodes,
            exit=leaves,
            extra=needs_an_extra,
        )
    )
    assert set(found.collectors) == {"good"}
    reasons = {broken.name: broken.reason for broken in found.broken}
    assert reasons["odd"] == 'it calls itself "other"'
    assert reasons["newer"] == "it needs collector API 99, this poller serves 1"
    assert reasons["empty"] == "it lacks Options, credentials, collect"
    assert reasons["bang"] == "RuntimeError: cannot be made"
    assert reasons["exit"] == "SystemExit: 1"
    assert reasons["extra"] == "it needs acme"


class Numbers(Good):
    name = "numbers"

    class Options(api.Options):
        port: int = 1
        ratio: float = 0.5
        tls: bool = False


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"port": "abc"}, "option \"port\": 'abc' is not a whole number"),
        ({"port": ""}, "option \"port\": '' is not a whole number"),
        ({"port": 1.5}, 'option "port": 1.5 is not a whole number'),
        ({"ratio": [1]}, 'option "ratio": [1] is not a number'),
        ({"tls": "yess"}, "option \"tls\": 'yess' is not true or false"),
    ],
)
def test_a_mistake_in_options_is_reported_with_the_value(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(errors.InvalidInput) as raised:
        registry.load(points(numbers=Numbers)).options("numbers", options)
    assert str(raised.value) == f"collector numbers: {said}"


def test_a_taken_name_stays_with_the_first() -> None:
    found = registry.load([*points(good=Good), *points(good=Good)])
    assert [broken.reason for broken in found.broken] == [
        "the name is taken by unknown distribution"
    ]


def test_a_broken_collector_is_refused_with_its_hint() -> None:
    found = registry.load(points(extra=needs_an_extra))
    with pytest.raises(errors.InvalidInput) as raised:
        found.get("extra")
    assert (raised.value.cause, raised.value.hint) == ("it needs acme", "pip install acme")


def test_an_unknown_collector_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(errors.InvalidInput) as raised:
        registry.load(points(good=Good)).get("goood")
    assert (raised.value.cause, raised.value.hint) == (
        "installed: good",
        "did you mean good? poller collectors",
    )


class Paced(Good):
    name = "paced"
    schedule = api.Schedule(api.Policy.ADAPTIVE, 30_000, min_ms=10_000)


class Disordered(Good):
    name = "disordered"
    schedule = api.Schedule(api.Policy.ADAPTIVE, 30_000, min_ms=40_000)


class Misdeclared(Good):
    name = "misdeclared"
    schedule = "30s"


def test_a_collector_may_declare_a_schedule() -> None:
    """A schedule that cannot work is reported when the plugin is loaded."""
    found = registry.load(
        points(good=Good, paced=Paced, disordered=Disordered, misdeclared=Misdeclared)
    )
    assert found.schedule("paced") == Paced.schedule
    assert found.schedule("good") == found.schedule("no such") == api.Schedule()
    assert {broken.name: broken.reason for broken in found.broken} == {
        "disordered": "its schedule: the min 40s is longer than the interval 30s",
        "misdeclared": "its schedule is not a poller.collectors.api.Schedule",
    }


def test_without_its_extra_the_routeros_collector_is_broken_and_says_how_to_install_it() -> None:
    """In a process of its own, where librouteros cannot be imported."""
    program = (
        "import sys; sys.modules['librouteros'] = None\n"
        "from poller.collectors import registry\n"
        "found = registry.load()\n"
        "assert 'snmp' in found.collectors\n"
        "[broken] = [b for b in found.broken if b.name == 'routeros']\n"
        "print(broken.reason, '|', broken.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == (
        "the routeros collector needs librouteros, which is not installed"
        " | pip install 'poller[routeros]'"
    )


def test_a_name_that_would_break_the_names_of_queues_is_refused() -> None:
    """`a;b=c` would be the domain of collector `a` with a required tag."""

    class Odd(Good):
        name = "a;b=c"

    found = registry.load(points(**{"a;b=c": Odd, "good": Good}))
    assert list(found.collectors) == ["good"]
    [broken] = found.broken
    assert 'its name contains ";"' in broken.reason


class Plain(Good):
    name = "plain"

    def collect(self, poll: api.Poll) -> Any:
        yield api.Reading("one", 1.0)


class Threaded(Plain):
    name = "threaded"
    blocking = True


class Confused(Good):
    name = "confused"
    blocking = True


class Attached(Threaded):
    name = "attached"

    def session_key(self, poll: api.Poll) -> int:
        return 0

    async def open_session(self, poll: api.Poll) -> None: ...

    async def close_session(self, session: None, *, politely: bool) -> None: ...


class Vague(Good):
    name = "vague"
    isolated = "maybe"


def test_a_generator_that_does_not_fit_its_abilities_is_refused_by_name() -> None:
    """The collector is refused when it is loaded, not at its first poll."""
    odd = {"plain": Plain, "confused": Confused, "attached": Attached, "vague": Vague}
    found = registry.load(points(threaded=Threaded, **odd))
    assert list(found.collectors) == ["threaded"]
    reasons = {each.name: f"{each.reason} {each.hint}" for each in found.broken}
    assert "blocking = True" in reasons["plain"]
    assert "async generator" in reasons["confused"]
    assert "a thread cannot wait" in reasons["attached"]
    assert "its isolated is neither True nor False" in reasons["vague"]


@pytest.mark.parametrize(
    "name",
    [
        "Options",
        "credentials",
        "cost",
        "schedule",
        "session_key",
        "discover",
        "isolated",
        "blocking",
        "close",
    ],
)
def test_what_is_computed_each_time_is_refused_at_the_door(name: str) -> None:
    """Every heartbeat reads the attribute: a property that raises would fail them all."""

    def broken(_: object) -> Any:
        raise RuntimeError("not configured")

    methods = {"open_session": Attached.open_session, "close_session": Attached.close_session}
    odd = type("Odd", (Good,), {"name": "odd", **methods, name: property(broken)})
    found = registry.load(points(good=Good, odd=odd))
    assert list(found.collectors) == ["good"]
    [broke] = found.broken
    assert broke.name == "odd"
    assert f"its {name} is a property" in broke.reason or "not configured" in broke.reason
    assert (found.keeping_sessions, found.costs) == ((), {})


def test_attributes_of_the_instance_are_as_good_as_those_of_the_class() -> None:
    class Made(Good):
        name = "made"
        __slots__ = ("cost",)

        def __init__(self) -> None:
            self.cost = 4

        @classmethod
        def help_texts(cls, options: Any) -> dict[str, str]:
            return {}

        @staticmethod
        async def close() -> None: ...

    assert registry.load(points(made=Made)).costs == {"made": 4.0}


class Dear(Good):
    name = "dear"
    cost = 8


class Returning(Good):
    name = "returning"

    async def collect(self, poll: api.Poll) -> Any:
        return [api.Reading("one", 1.0)]


class Shapeless(Good):
    name = "shapeless"
    Options = dict  # type: ignore[assignment]


def test_a_cost_is_a_number_from_one() -> None:
    """The size of a batch is divided by it."""

    def costing(what: Any) -> Any:
        return type("Odd", (Good,), {"name": "odd", "cost": what})

    assert registry.load(points(dear=Dear, good=Good)).costs == {"dear": 8.0}
    for what in (0, 0.5, -1, float("nan"), float("inf"), "8", None, True):
        [broken] = registry.load(points(odd=costing(what))).broken
        assert broken.reason.startswith("its cost is"), what


def test_what_could_never_be_polled_is_refused_at_the_door() -> None:
    """A coroutine that yields nothing, and options that check nothing."""
    found = registry.load(points(returning=Returning, shapeless=Shapeless))
    assert {each.name: each.reason for each in found.broken} == {
        "returning": "its collect yields nothing",
        "shapeless": "its Options is not a class made from poller.collectors.api.Options",
    }


def _optional(**fields: Any) -> Any:
    class Odd(Good):
        name = "odd"
        Options = pydantic.create_model("Options", __base__=Unchecked, **fields)

    return Odd


class Unchecked(api.Options):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)


@pytest.mark.parametrize(
    "field",
    [
        (Any, object()),
        (type(points), pydantic.Field(description="no schema")),
        (int, pydantic.Field(default_factory=lambda: 1 // 0)),
        (int, pydantic.Field(default_factory=lambda: sys.exit(4))),
    ],
    ids=["default", "schema", "factory", "exit"],
)
def test_options_that_cannot_be_shown_are_refused_at_the_door(field: Any) -> None:
    """Otherwise the list, the page and the API would fail for all collectors."""
    found = registry.load(points(good=Good, odd=_optional(field=field)))
    assert list(found.collectors) == ["good"]
    assert [broken.state for broken in found.broken] == ["breaks the contract"]


@pytest.mark.parametrize("raised", [SystemExit(5), KeyboardInterrupt(), RecursionError("deep")])
def test_any_exception_about_options_becomes_invalid_input(
    raised: BaseException,
) -> None:
    """In a worker a SystemExit would cost a place for good, and soon all of them."""

    def bang(_: object, options: object = None) -> Any:
        raise raised

    class Odd(Good):
        name = "odd"

        class Options(api.Options):
            @pydantic.model_validator(mode="before")
            @classmethod
            def _bang(cls, value: Any) -> Any:
                raise raised

    class Picky(Good):
        name = "picky"
        check_options = brings_credential = bang
        credentials = (Token,)

    found = registry.load(points(odd=Odd, picky=Picky))
    with pytest.raises(errors.InvalidInput, match="its options cannot be checked"):
        found.options("odd", {})
    with pytest.raises(errors.InvalidInput, match="its options cannot be checked"):
        found.checked_options("picky", {})
    with pytest.raises(errors.CollectorCrashed, match="picky raised"):
        api.needs_credential(found.get("picky"), found.options("picky", {}))
