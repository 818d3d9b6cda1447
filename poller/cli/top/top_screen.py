"""The screen of `poller top`: lines that fit a terminal, made from its state."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import set_cell_size
from rich.text import Text

from poller.cli.output.columns import one_line
from poller.cli.top.top_state import TopData, TopState
from poller.domain.record.overview import State
from poller.presentation import formatting
from poller.service.fleet.device_listing import ListedDevice

_STYLES = {"failing": "red", "degraded": "yellow", "unknown": "dim", "ok": "cyan"}
_GLYPHS = {"failing": "■", "degraded": "▲", "unknown": "○", "ok": "●", "disabled": "‖"}
_HELP = "q quit  / filter  f only failing  j k row  Enter why  p poll  . pause"
#: Lines that are not rows of devices.
FIXED_LINES = 9
CAUSES = 3


def lines(state: TopState, width: int, height: int) -> list[Text]:
    """Return the lines of the screen, at most `height` of them."""
    if state.data is None:
        return [Text("reading the board")]
    shown = [*_head(state, state.data, width), *_rows(state, state.data, width)]
    tail = [*_tail(state, width)]
    return [*shown[: max(0, height - len(tail))], *tail]


def _head(state: TopState, data: TopData, width: int) -> Iterator[Text]:
    view = data.overview
    as_of = formatting.instant(view.as_of_ms)[11:19]
    mark = " PAUSED" if state.paused else ""
    yield Text(_fit(f"poller  as of {as_of} UTC{mark}", width), style="bold")
    yield Text(_fit(data.health.text, width), style="bold" if data.health.alarm else "")
    yield _numbers(data)
    for cause in data.fleet.causes[:CAUSES]:
        place = f"site {cause.site}" if cause.site else "no site"
        devices = formatting.counted(cause.devices, "device")
        yield Text(_fit(f"  {cause.code} · {place} · {devices}", width))
    title = "failing devices" if state.only_failing else "devices"
    where = f" that match {state.where}" if state.where else ""
    yield Text(_fit(f"{title}{where}", width), style="bold underline")


def _numbers(data: TopData) -> Text:
    view = data.overview
    line = Text()
    for each in State:
        number = view.states.get(each, 0)
        style = _STYLES[each.value] if number else "dim"
        line.append(f"{_GLYPHS[each.value]} {number:,} {each.value}  ", style=style)
    line.append(f"{view.overdue:,} late  {formatting.rate(view.polls_per_second)}")
    return line


def _rows(state: TopState, data: TopData, width: int) -> Iterator[Text]:
    if data.problem:
        yield Text(_fit(data.problem, width), style="red")
        return
    if not data.devices:
        yield Text("none", style="dim")
    for listed in data.devices:
        is_selected = listed.device.name == state.selected
        yield _row(listed, data.overview.as_of_ms, width, is_selected)


def _row(listed: ListedDevice, now_ms: int, width: int, is_selected: bool) -> Text:
    summary = listed.summary
    status = summary.worst.status if summary.worst else None
    word = status.code if status and status.code else summary.state
    age = formatting.age(now_ms - summary.ok_ms) if summary.ok_ms else "never"
    message = one_line(status.message) if status else ""
    marker = ">" if is_selected else " "
    glyph = _GLYPHS.get(summary.state, " ")
    name = set_cell_size(one_line(listed.device.name), 28)
    text = f"{marker} {glyph} {name} {set_cell_size(word, 18)} {age:>9}  {message}"
    style = "reverse" if is_selected else _STYLES.get(summary.state, "")
    return Text(_fit(text, width), style=style)


def _tail(state: TopState, width: int) -> Iterator[Text]:
    for sentence in state.detail:
        for part in _wrapped(sentence, width):
            yield Text(part)
    if state.note:
        yield Text(_fit(state.note, width), style="bold")
    if state.typed is not None:
        yield Text(_fit(f"/{state.typed}█", width), style="bold")
    else:
        yield Text(_fit(_HELP, width), style="dim")


def _wrapped(text: str, width: int) -> list[str]:
    """The lines of a sentence, cut at blanks."""
    lines = [""]
    for word in one_line(text).split():
        joined = f"{lines[-1]} {word}".strip()
        if len(joined) > width and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = joined
    return lines


def _fit(text: str, width: int) -> str:
    """The text cut to the width, with an ellipsis where it was cut."""
    clean = one_line(text)
    return clean if len(clean) <= width else f"{clean[: max(0, width - 1)]}…"
