"""Tables that fit a terminal: names, times and codes stay whole, and the last sentence of a row gets what is left.

Where that is too little, columns nobody would miss are left out first; then the sentence goes below its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from poller.cli.output.columns import Column, Fit, Item

if TYPE_CHECKING:
    from rich.console import Console

_GAP = 2
_INDENT = 2  # of a sentence below its row
_LEAST = {Fit.CUT: 6, Fit.WRAP: 18, Fit.REST: 24}


class Layout(NamedTuple):
    """Which columns are shown how wide, by their places; `below` is the place of the one below each row."""

    widths: dict[int, int]
    below: int | None
    left_out: list[int]


def draw(items: Sequence[Item], columns: Sequence[Column], screen: Console) -> list[str]:
    """Print a table. Returns the titles of the columns there was no room for."""
    rows = [[each.on_screen(item) for each in columns] for item in items]
    layout = fitted(rows, columns, screen.width)
    [head] = _lines([each.title for each in columns], columns, layout._replace(below=None), screen)
    screen.print(Text(head, style="bold"), soft_wrap=True)
    whole = sum(layout.widths.values()) + _GAP * (len(layout.widths) - 1)
    screen.file.write(("─" if screen.encoding.startswith("utf") else "-") * whole + "\n")
    for row in rows:
        screen.file.writelines(f"{line}\n" for line in _lines(row, columns, layout, screen))
    return [columns[place].title for place in layout.left_out]


def fitted(rows: Sequence[Sequence[str]], columns: Sequence[Column], screen: int) -> Layout:
    """Beside each other if they can, without as few of the spare ones as possible; else the sentence goes below."""
    titled = [[each.title for each in columns], *rows]
    natural = dict(enumerate(max(map(cell_len, cells)) for cells in zip(*titled, strict=True)))
    rest = next((place for place, each in enumerate(columns) if each.fit is Fit.REST), None)
    spare = sorted(
        (p for p, each in enumerate(columns) if each.spare), key=lambda p: -columns[p].spare
    )
    below = [None] if rest is None else [None, rest]
    for under in below:
        for number in range(len(spare) + 1):
            left_out = spare[:number]
            widths = {p: width for p, width in natural.items() if p not in left_out and p != under}
            if _shrink(widths, columns, screen):
                return Layout(widths, under, sorted(left_out))
    _shrink(widths, [each._replace(least=0) for each in columns], screen)
    return Layout(widths, under, sorted(left_out))


def _shrink(widths: dict[int, int], columns: Sequence[Column], screen: int) -> bool:
    """Sentences give way first, then the widest of what may be cut. False when it is too wide even so."""
    room = screen - _GAP * (len(widths) - 1)
    for fit in (Fit.REST, Fit.WRAP, Fit.CUT):
        least = {p: max(columns[p].least, _LEAST[fit]) for p in widths if columns[p].fit is fit}
        while sum(widths.values()) > room:
            places = [place for place in least if widths[place] > least[place]]
            if not places:
                break
            widths[max(places, key=lambda place: widths[place])] -= 1
    return sum(widths.values()) <= room


def _lines(
    row: Sequence[str], columns: Sequence[Column], layout: Layout, screen: Console
) -> Iterator[str]:
    cells = [
        _cell(row[place], columns[place], width, screen) for place, width in layout.widths.items()
    ]
    for parts in zip_longest(*cells, fillvalue=""):
        padded = zip(layout.widths.items(), parts, strict=True)
        yield (
            (" " * _GAP)
            .join(_padded(part, width, columns[place].right) for (place, width), part in padded)
            .rstrip()
        )
    if layout.below is not None and row[layout.below]:
        yield " " * _INDENT + _cut(row[layout.below], screen.width - _INDENT)


def _cell(text: str, column: Column, width: int, screen: Console) -> list[str]:
    if column.fit is Fit.WRAP and cell_len(text) > width:
        return [line.plain.rstrip() for line in Text(text).wrap(screen, width)]
    return [_cut(text, width)]


def _padded(text: str, width: int, right: bool) -> str:
    return " " * (width - cell_len(text)) + text if right else set_cell_size(text, width)


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"
