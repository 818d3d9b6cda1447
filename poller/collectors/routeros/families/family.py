"""How a family is written down: what to ask a router, and what becomes of the rows it answers. Data, and no code.

`asking.py` sends the commands, `shapes.py` makes the readings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from poller.collectors.routeros import value_parser
from poller.domain.metrics.reading import Kind

Row = Mapping[str, str]
Rows = Sequence[Row]

#: Before every name of a metric. What follows is the name mktxp gives the same number, where it has it.
PREFIX = "routeros_"
#: Every counter of RouterOS has so many bits.
WIDTH = 64
#: Where the answer to a `count-only` stands.
COUNT = "ret"
#: Made of the DHCP leases that were read last, for rows with a `mac-address` or a `src-address`.
DHCP_NAME, DHCP_ADDRESS = "dhcp-name", "dhcp-address"


@dataclass(frozen=True, slots=True)
class Metric:
    """A property that becomes a number."""

    property: str
    name: str  # without PREFIX
    help: str
    kind: Kind = Kind.GAUGE
    parse: value_parser.Parse = value_parser.number
    absent: float | None = None  # what a row means that lacks the property; None: nothing


@dataclass(frozen=True, slots=True)
class Info:
    """What describes a row: a metric that is always 1, with these labels besides those of the table."""

    name: str  # without PREFIX
    help: str
    labels: Mapping[str, str]  # label to property


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What rows become. `labels` tell rows apart, and are on every metric: so they must not change by themselves."""

    labels: Mapping[str, str] = field(default_factory=dict)  # label to property
    metrics: tuple[Metric, ...] = ()
    info: Info | None = None
    reshape: Callable[[Rows], Rows] | None = (
        None  # rows to other rows, such as how many there are of a kind
    )
    reads: tuple[str, ...] = ()  # properties that only `reshape` looks at
    made: tuple[str, ...] = ()  # properties that no router knows: we make them
    adds_up: bool = False  # rows with the same labels are added up; else the last one counts

    def properties(self) -> Iterator[str]:
        """What to ask for."""
        info = self.info.labels.values() if self.info else ()
        names = (
            *self.labels.values(),
            *info,
            *(metric.property for metric in self.metrics),
            *self.reads,
        )
        yield from (name for name in names if name not in self.made)

    def help_texts(self) -> Iterator[tuple[str, str]]:
        if self.info:
            yield PREFIX + self.info.name, self.info.help
        yield from ((PREFIX + metric.name, metric.help) for metric in self.metrics)


@dataclass(frozen=True, slots=True, eq=False)
class Then:
    """A second command about the rows of the first: as a rule `monitor`, once, for all of them."""

    path: str
    verb: str
    join: Callable[[Rows, Rows], Rows]
    numbers: str = ""  # the word that takes the names of the rows; empty: the command is about a menu of its own
    properties: tuple[str, ...] = ()  # empty: the same as in the first command
    one_by_one: bool = False  # it takes one name

    @property
    def command(self) -> str:
        return f"{self.path}/{self.verb}"


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """A print of a menu, and what becomes of its rows. A menu the router does not have is left out."""

    path: str
    tables: tuple[Table, ...]
    words: tuple[str, ...] = ()  # such as `stats`
    queries: tuple[str, ...] = ()  # the router leaves out the other rows
    called: Mapping[str, str] = field(default_factory=dict)  # a property to what this menu calls it
    count: bool = False  # only how many rows there are, as the property COUNT
    wanted: tuple[str, str] | None = (
        None  # property and option: only rows with one of these values; none: do not ask
    )
    only: Callable[[Row], bool] | None = (
        None  # which rows, if the whole menu was read before in the same poll
    )
    then: Then | None = None

    @property
    def command(self) -> str:
        return f"{self.path}/print"

    def commands(self) -> tuple[str, ...]:
        return (self.command, self.then.command) if self.then else (self.command,)

    def proplist(self) -> tuple[str, ...]:
        """The router computes nothing else."""
        names = (name for table in self.tables for name in table.properties())
        return tuple(dict.fromkeys(self.called.get(name, name) for name in names))


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """What people choose: some menus that belong together."""

    name: str
    help: str
    asks: tuple[Ask, ...]
    every_s: int = 0  # read it no more often, unless the target says otherwise; 0: in every poll

    @property
    def policies(self) -> tuple[str, ...]:
        """What the group of the login must be allowed."""
        monitors = any(ask.then and ask.then.numbers for ask in self.asks)
        return ("api", "read", "test") if monitors else ("api", "read")

    def tables(self) -> tuple[Table, ...]:
        return tuple(dict.fromkeys(table for ask in self.asks for table in ask.tables))

    def help_texts(self) -> dict[str, str]:
        return dict(text for table in self.tables() for text in table.help_texts())


def counter(
    property_: str, name: str, help_: str, parse: value_parser.Parse = value_parser.number
) -> Metric:
    return Metric(property_, name, help_, Kind.COUNTER, parse)


def flag(property_: str, name: str, help_: str) -> Metric:
    """Yes or no; a router leaves it out where it is no."""
    return Metric(property_, name, f"{help_} 1 yes, 0 no", parse=value_parser.truth, absent=0)


def same(*properties: str) -> dict[str, str]:
    """Labels named like the properties, with underscores."""
    return {name.replace("-", "_").replace(".", "_"): name for name in properties}
