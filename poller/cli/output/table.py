"""Tables that fit a terminal: names, times and codes stay whole, the last sentence gets the rest.

On a narrow terminal spare columns are left out first; then the sentence moves below its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from poller.cli.output.columns import Column, Fit, Item

if TYPE_CHECKING:
    from rich.console import Console

_GAP = 2
_INDENT = 2  # of a sentence below its row
_MINIMUM = {Fit.CUT: 6, Fit.WRAP: 18, Fit.REST: 24}


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table by index: their widths, the one below each row, those left out."""

    widths: dict[int, int]
    below: int | None
    left_out: list[int]


def draw(items: Sequence[Item], columns: Sequence[Column], screen: Console) -> list[str]:
    """Print a table. Returns the titles of the columns that were left out."""
    rows = [[each.on_screen(item) for each in columns] for item in items]
    layout = fitted(rows, columns, screen.width)

    titles = [each.title for each in columns]
    [head] = _lines(titles, columns, replace(layout, below=None), screen)
    screen.print(Text(head, style="bold"), soft_wrap=True)

    rule = "─" if screen.encoding.startswith("utf") else "-"
    screen.file.write(rule * _total(layout.widths) + "\n")

    for item, row in zip(items, rows, strict=True):
        lines = _lines(row, columns, layout, screen)
        styles = _styles(item, columns, layout)
        if styles:
            _print_styled(lines, styles, screen)
        else:
            screen.file.writelines(f"{line}\n" for line in lines)

    return [columns[index].title for index in layout.left_out]


def _styles(item: Item, columns: Sequence[Column], layout: Layout) -> list[tuple[int, int, str]]:
    """The coloured cells of a row: begin, end and style of each."""
    styles = []
    begin = 0
    for index, width in layout.widths.items():
        column = columns[index]
        style = column.style(item) if column.style else ""
        if style:
            styles.append((begin, begin + width, style))
        begin += width + _GAP
    return styles


def _print_styled(
    lines: Iterator[str], styles: Sequence[tuple[int, int, str]], screen: Console
) -> None:
    """Print the lines of a row, the first one coloured: no cell with a style is wrapped.

    Cells before a coloured one have one character for each cell.
    """
    first = Text(next(lines))
    for begin, end, style in styles:
        first.stylize(style, begin, end)
    screen.print(first, soft_wrap=True)
    screen.file.writelines(f"{line}\n" for line in lines)


def fitted(rows: Sequence[Sequence[str]], columns: Sequence[Column], screen: int) -> Layout:
    """The layout that leaves out the fewest columns, with the sentence in its row if possible."""
    natural = _natural_widths(rows, columns)
    rest = next((index for index, each in enumerate(columns) if each.fit is Fit.REST), None)
    below_choices = [None] if rest is None else [None, rest]

    layout = Layout(natural, None, [])
    for below in below_choices:
        for left_out in _choices_left_out(columns):
            hidden = {below, *left_out}
            widths = {index: width for index, width in natural.items() if index not in hidden}
            layout = Layout(widths, below, sorted(left_out))
            if _shrink(widths, columns, screen):
                return layout

    without_minimum = [replace(each, minimum=0) for each in columns]
    _shrink(layout.widths, without_minimum, screen)
    return layout


def _natural_widths(rows: Sequence[Sequence[str]], columns: Sequence[Column]) -> dict[int, int]:
    """The width of each column's longest text, its title included."""
    titles = [each.title for each in columns]
    by_column = zip(titles, *rows, strict=True)
    return {index: max(map(cell_len, cells)) for index, cells in enumerate(by_column)}


def _choices_left_out(columns: Sequence[Column]) -> Iterator[list[int]]:
    """No column, then the sparest, then the two sparest, and so on."""
    spare = [index for index, each in enumerate(columns) if each.spare]
    spare.sort(key=lambda index: -columns[index].spare)
    for number in range(len(spare) + 1):
        yield spare[:number]


def _total(widths: dict[int, int]) -> int:
    """The width of a row, gaps included."""
    return sum(widths.values()) + _GAP * (len(widths) - 1)


def _shrink(widths: dict[int, int], columns: Sequence[Column], screen: int) -> bool:
    """Narrow sentences first, then the widest column that may be cut.

    False if that is not enough.
    """
    for fit in (Fit.REST, Fit.WRAP, Fit.CUT):
        minimum = {}
        for index in widths:
            if columns[index].fit is fit:
                minimum[index] = max(columns[index].minimum, _MINIMUM[fit])

        while _total(widths) > screen:
            shrinkable = [index for index in minimum if widths[index] > minimum[index]]
            if not shrinkable:
                break
            widest = max(shrinkable, key=widths.__getitem__)
            widths[widest] -= 1

    return _total(widths) <= screen


def _lines(
    row: Sequence[str], columns: Sequence[Column], layout: Layout, screen: Console
) -> Iterator[str]:
    """The lines of one row: wrapped cells, then the sentence below it."""
    cells = []
    for index, width in layout.widths.items():
        cells.append(_cell(row[index], columns[index], width, screen))

    for parts in zip_longest(*cells, fillvalue=""):
        padded = []
        for (index, width), part in zip(layout.widths.items(), parts, strict=True):
            padded.append(_padded(part, width, columns[index].right))
        yield (" " * _GAP).join(padded).rstrip()

    if layout.below is not None and row[layout.below]:
        for line in _cell(row[layout.below], columns[layout.below], screen.width - _INDENT, screen):
            yield " " * _INDENT + line


def _cell(text: str, column: Column, width: int, screen: Console) -> list[str]:
    """The lines of one cell, wrapped or cut to the width."""
    if (column.fit is Fit.WRAP or column.wraps) and cell_len(text) > width:
        return [line.plain.rstrip() for line in Text(text).wrap(screen, width)]
    return [_cut(text, width)]


def _padded(text: str, width: int, right: bool) -> str:
    """The text filled with spaces, on the left if it is aligned right."""
    if right:
        return " " * (width - cell_len(text)) + text
    return set_cell_size(text, width)


def _cut(text: str, width: int) -> str:
    """The text if it fits, else its beginning and an ellipsis."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"
