"""docs/routeros.md and the metrics reference match the families; `UPDATE_DOCS=1` writes both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks import same_numbers
from poller.collectors.routeros.families import FAMILIES, PRESENT, PRESENT_HELP
from poller.collectors.routeros.families.family import PREFIX, Family, Menu, Table
from poller.domain.inventory import duration
from poller.domain.metrics.reading import Kind

DOCS = Path(__file__).parents[4] / "docs"
PAGE, REFERENCE = DOCS / "routeros.md", DOCS / "reference" / "routeros-metrics.md"
HINT = "is out of date: UPDATE_DOCS=1 pytest tests/unit/collectors/routeros/test_routeros_page.py"


def written(path: Path, text: str) -> None:
    if os.environ.get("UPDATE_DOCS"):
        path.write_text(text)
    assert path.read_text() == text, f"{path.name} {HINT}"


def between(name: str, text: str) -> None:
    """A part of the page, between two comments."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = PAGE.read_text().partition(begin)
    written(PAGE, f"{before}{begin}{text}{end}{rest.partition(end)[2]}")


def test_what_differs_from_mktxp() -> None:
    rows = [f"| {each.what} | {each.why} |\n" for each in same_numbers.DIFFERENCES]
    between("differences", "| mktxp's | why |\n|---|---|\n" + "".join(rows))
    names = [f"| `{theirs}` | `{ours}` |\n" for theirs, ours in same_numbers.RENAMED.items()]
    between("names", "| mktxp | poller |\n|---|---|\n" + "".join(names))


def test_the_table_of_families() -> None:
    """Name, what it reads, where, and how often at most."""
    rows = [
        f"| `{family.name}` | {family.help} | {_menus(family)} | {_every(family)} |\n"
        for family in FAMILIES.values()
    ]
    table = "| family | reads | menus | at most every |\n|---|---|---|---|\n" + "".join(rows)
    between("families", table)


def test_every_metric_is_in_the_reference() -> None:
    head = (
        "# RouterOS metrics\n\n"
        "What each [family](../routeros.md#families) gives. "
        "Info metrics are 1; their labels describe the row.\n\n"
        f"`{PRESENT}` (gauge, `family`): {PRESENT_HELP}.\n"
    )
    written(REFERENCE, head + "".join(_section(family) for family in FAMILIES.values()))


def _menus(family: Family) -> str:
    paths = dict.fromkeys(path for menu in family.menus for path in _paths(menu))
    return "<br>".join(f"`{path}`" for path in paths)


def _paths(menu: Menu) -> Iterator[str]:
    if not (menu.follow_up and menu.row_filter):
        yield menu.path
    if menu.follow_up:
        yield menu.follow_up.command.removesuffix("/print")


def _every(family: Family) -> str:
    return duration.format_ms(family.every_s * 1000) if family.every_s else "poll"


def _section(family: Family) -> str:
    lines = dict.fromkeys(line for table in family.tables() for line in _lines(table))
    return (
        f"\n## {family.name}\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n"
        + "".join(lines)
    )


def _lines(table: Table) -> Iterator[str]:
    if table.info:
        yield _line(
            table.info.name, Kind.INFO, (*table.labels, *table.info.labels), table.info.help
        )
    for metric in table.metrics:
        yield _line(metric.name, metric.kind, tuple(table.labels), metric.help)


def _line(name: str, kind: Kind, labels: tuple[str, ...], meaning: str) -> str:
    label_text = ", ".join(f"`{label}`" for label in labels)
    return f"| `{PREFIX}{name}` | {kind.value} | {label_text} | {meaning} |\n"
