"""The model of a family: the menus to read, and the metrics their rows become.

Families are data. `family_reader.py` sends the commands, `row_readings.py` makes the readings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from poller.collectors.routeros import value_parser
from poller.domain.metrics.reading import Kind

Row = Mapping[str, str]
Rows = Sequence[Row]

#: Prefix of every metric name. The rest is the name that mktxp gives the same number, if it has it.
PREFIX = "routeros_"
#: Bits of every RouterOS counter.
WIDTH = 64
#: The property that holds the reply to a `count-only` command.
COUNT = "ret"
#: Properties computed from the DHCP leases, for rows with a `mac-address` or a `src-address`.
DHCP_NAME = "dhcp-name"
DHCP_ADDRESS = "dhcp-address"


@dataclass(frozen=True, slots=True)
class Metric:
    """A property that becomes a number."""

    property: str
    name: str  # without PREFIX
    help: str
    kind: Kind = Kind.GAUGE
    parse: value_parser.Parse = value_parser.number
    absent: float | None = None  # value of a row without the property; None: no reading


@dataclass(frozen=True, slots=True)
class Info:
    """The description of a row: a metric that is always 1, with these additional labels."""

    name: str  # without PREFIX
    help: str
    labels: Mapping[str, str]  # label to property


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The metrics of a menu's rows.

    `labels` identify a row and are on all of its metrics, so they must not change on their own.
    """

    labels: Mapping[str, str] = field(default_factory=dict)  # label to property
    metrics: tuple[Metric, ...] = ()
    info: Info | None = None
    transform: Callable[[Rows], Rows] | None = None  # applied before the metrics are read
    transform_inputs: tuple[str, ...] = ()  # properties that only `transform` reads
    computed: tuple[str, ...] = ()  # properties that we compute; the router has no such property
    sums_rows: bool = False  # rows with equal labels are added up; else the last one counts

    def properties(self) -> Iterator[str]:
        """Yield the properties to request."""
        yield from (name for name in self._all_properties() if name not in self.computed)

    def _all_properties(self) -> Iterator[str]:
        yield from self.labels.values()
        if self.info:
            yield from self.info.labels.values()
        for metric in self.metrics:
            yield metric.property
        yield from self.transform_inputs

    def help_texts(self) -> Iterator[tuple[str, str]]:
        if self.info:
            yield PREFIX + self.info.name, self.info.help
        for metric in self.metrics:
            yield PREFIX + metric.name, metric.help


@dataclass(frozen=True, slots=True, eq=False)
class FollowUp:
    """A second command about the rows of the first, usually one `monitor` for all of them."""

    path: str
    verb: str
    join: Callable[[Rows, Rows], Rows]
    names_word: str = ""  # the word that takes the names of the rows; "": the command takes none
    properties: tuple[str, ...] = ()  # (): the properties of the first command
    one_by_one: bool = False  # the command takes one name at a time

    @property
    def command(self) -> str:
        return f"{self.path}/{self.verb}"


@dataclass(frozen=True, slots=True, eq=False)
class Menu:
    """A menu to print, and the tables of its rows. A menu that the router lacks is left out."""

    path: str
    tables: tuple[Table, ...]
    words: tuple[str, ...] = ()  # words of the command, such as `stats`
    queries: tuple[str, ...] = ()  # the router returns only rows that match
    renames: Mapping[str, str] = field(default_factory=dict)  # our property to the menu's name
    count_only: bool = False  # the reply is the number of rows, as the property COUNT
    #: Property and option: only rows with a value of the option; without values no command.
    selected: tuple[str, str] | None = None
    #: Selects the rows if the same poll has read the whole menu before.
    row_filter: Callable[[Row], bool] | None = None
    follow_up: FollowUp | None = None

    @property
    def command(self) -> str:
        return f"{self.path}/print"

    def commands(self) -> tuple[str, ...]:
        if self.follow_up is None:
            return (self.command,)
        return (self.command, self.follow_up.command)

    def proplist(self) -> tuple[str, ...]:
        """Return the properties to request; the router computes no others."""
        names = (name for table in self.tables for name in table.properties())
        return tuple(dict.fromkeys(self.renames.get(name, name) for name in names))


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A group of menus that an operator selects by name."""

    name: str
    help: str
    menus: tuple[Menu, ...]
    every_s: int = 0  # minimum interval of reads, unless the target sets one; 0: every poll

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies that the group of the login needs."""
        monitors = any(menu.follow_up and menu.follow_up.names_word for menu in self.menus)
        return ("api", "read", "test") if monitors else ("api", "read")

    def tables(self) -> tuple[Table, ...]:
        return tuple(dict.fromkeys(table for menu in self.menus for table in menu.tables))

    def help_texts(self) -> dict[str, str]:
        return dict(text for table in self.tables() for text in table.help_texts())


def gauge(
    property_: str,
    name: str,
    help_: str,
    parse: value_parser.Parse = value_parser.number,
    absent: float | None = None,
) -> Metric:
    return Metric(property_, name, help_, Kind.GAUGE, parse, absent)


def counter(
    property_: str, name: str, help_: str, parse: value_parser.Parse = value_parser.number
) -> Metric:
    return Metric(property_, name, help_, Kind.COUNTER, parse)


def flag(property_: str, name: str, help_: str) -> Metric:
    """Make a metric of yes (1) or no (0); a router leaves the property out for no."""
    return Metric(property_, name, f"{help_} 1 yes, 0 no", parse=value_parser.truth, absent=0)


def labels_from(*properties: str) -> dict[str, str]:
    """Name labels like the properties, with underscores."""
    return {name.replace("-", "_").replace(".", "_"): name for name in properties}
