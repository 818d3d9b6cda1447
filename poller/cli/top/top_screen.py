"""The screen of `poller top`: lines that fit a terminal, made from its state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.text import Text

from poller.cli.output.columns import one_line
from poller.cli.top.top_state import TopData, TopState
from poller.domain.record.overview import State
from poller.presentation import formatting
from poller.service.fleet.device_listing import ListedDevice

_STYLES = {"failing": "red", "degraded": "yellow", "unknown": "dim", "ok": "cyan"}
_GLYPHS = {"failing": "■", "degraded": "▲", "unknown": "○", "ok": "●", "disabled": "‖"}
_KEYS = ("q quit", "/ filter", "f only failing", "j k row", "Enter why", "p poll", ". pause")
CAUSES = 3
#: Lines of the sentence at the top, and of what is said of the marked device.
_SENTENCE, _DETAIL = 3, 10
_LONGEST_NAME, _LONGEST_WORD = 28, 18
_AGE = 9


@dataclass(frozen=True, slots=True)
class _Widths:
    """The cells of the columns: as narrow as the devices that were read allow."""

    screen: int
    name: int
    word: int


def lines(state: TopState, width: int, height: int) -> list[Text]:
    """Return the lines of the screen, at most `height` of them; the mark is always among them."""
    if state.data is None:
        return [Text("reading the board")]
    head = [*_head(state, state.data, width)][: max(0, height - 1)]
    tail = [*_tail(state, state.data, width)][-max(1, height - len(head)) :]
    room = max(0, height - len(head) - len(tail))
    return [*head, *_rows(state, state.data, width, room), *tail]


def _head(state: TopState, data: TopData, width: int) -> Iterator[Text]:
    view = data.overview
    as_of = formatting.instant(view.as_of_ms)[11:19]
    mark = " PAUSED" if state.paused else ""
    yield Text(_fit(f"poller  as of {as_of} UTC{mark}", width), style="bold")
    sentence = _wrapped(data.health.text, width)
    if len(sentence) > _SENTENCE:
        sentence[_SENTENCE - 1] += "…"
    for line in sentence[:_SENTENCE]:
        yield Text(_fit(line, width), style="bold" if data.health.alarm else "")
    yield _numbers(data, width)
    for cause in data.fleet.causes[:CAUSES]:
        place = f"site {cause.site}" if cause.site else "no site"
        devices = formatting.counted(cause.devices, "device")
        yield Text(_fit(f"  {cause.code} · {place} · {devices}", width))


def _numbers(data: TopData, width: int) -> Text:
    view = data.overview
    line = Text()
    for each in State:
        number = view.states.get(each, 0)
        style = _STYLES[each.value] if number else "dim"
        line.append(f"{_GLYPHS[each.value]} {number:,} {each.value}  ", style=style)
    line.append(f"{view.overdue:,} late  {formatting.rate(view.polls_per_second)}")
    line.truncate(width, overflow="ellipsis")
    return line


def _rows(state: TopState, data: TopData, width: int, room: int) -> Iterator[Text]:
    """The title, the heading, and as many devices as there is room for, the marked one included."""
    title = "failing devices" if state.only_failing else "devices"
    where = f" that match {state.where}" if state.where else ""
    title = f"{title}{where}"
    if data.problem or not data.devices:
        found = [Text(_fit(title, width), style="bold underline")]
        for line in _wrapped(data.problem, width) if data.problem else ["none"]:
            found.append(Text(_fit(line, width), style="red" if data.problem else "dim"))
        yield from found[:room]
        return
    first = _first_shown(state, room - 2)
    shown = data.devices[first : first + max(0, room - 2)]
    if len(shown) < len(data.devices) or data.more:
        more = "or more" if data.more else ""
        title += f"  {first + 1} to {first + len(shown)} of {len(data.devices)} {more}".rstrip()
    widths = _widths(data.devices, width)
    head = _columns("  ", "DEVICE", "STATE", "LAST GOOD", "WHY", widths)
    found = [Text(_fit(title, width), style="bold underline"), Text(head, style="dim")]
    for listed in shown:
        is_marked = listed.device.name == state.selected
        style = "reverse" if is_marked else _STYLES.get(listed.summary.state, "")
        found.append(Text(_row(listed, data.overview.as_of_ms, widths, is_marked), style=style))
    yield from found[:room]


def _first_shown(state: TopState, room: int) -> int:
    """How many devices are above the screen: none until the mark would be below it."""
    names = state.names
    at = names.index(state.selected) if state.selected in names else 0
    return max(0, at - max(1, room) + 1)


def _widths(devices: Sequence[ListedDevice], screen: int) -> _Widths:
    names = max(cell_len(one_line(each.device.name)) for each in devices)
    words = max(cell_len(_word(each)) for each in devices)
    return _Widths(screen, max(6, min(_LONGEST_NAME, names)), max(5, min(_LONGEST_WORD, words)))


def _row(listed: ListedDevice, now_ms: int, widths: _Widths, is_marked: bool) -> str:
    summary = listed.summary
    age = formatting.age(now_ms - summary.ok_ms) if summary.ok_ms else "never"
    mark = f"{'>' if is_marked else ' '} {_GLYPHS.get(summary.state, ' ')}"
    return _columns(mark, listed.device.name, _word(listed), age, _message(listed), widths)


def _columns(mark: str, name: str, word: str, age: str, message: str, widths: _Widths) -> str:
    """The line of one row; the message gets the rest of it."""
    shown = set_cell_size(_fit(one_line(name), widths.name), widths.name)
    cells = f"{set_cell_size(mark, 3)} {shown} {set_cell_size(word, widths.word)} {age:>{_AGE}}  "
    return _fit(cells + message, widths.screen)


def _word(listed: ListedDevice) -> str:
    status = listed.summary.worst.status if listed.summary.worst else None
    return status.code if status and status.code else listed.summary.state


def _message(listed: ListedDevice) -> str:
    return one_line(listed.summary.worst.status.message) if listed.summary.worst else ""


def _tail(state: TopState, data: TopData, width: int) -> Iterator[Text]:
    """Return the last lines: the marked device, the last note, and the keys or the filter."""
    detail = [line for each in _details(state, data, width) for line in _wrapped(each, width)]
    for line in detail[:_DETAIL]:
        yield Text(_fit(line, width))
    if len(detail) > _DETAIL:
        yield Text(_fit(f"more: poller why {state.selected}", width), style="dim")
    if state.note:
        yield Text(_fit(state.note, width), style="bold")
    if state.typed is not None:
        yield Text(_fit(f"/{state.typed}█", width), style="bold")
    else:
        keys = [each for each in _KEYS if state.may_poll or not each.startswith("p ")]
        yield Text(_fit("  ".join(keys), width), style="dim")


def _details(state: TopState, data: TopData, width: int) -> Sequence[str]:
    """The sentences that were asked for; else the error of the marked device, if it was cut."""
    if state.detail:
        return state.detail
    marked = next((each for each in data.devices if each.device.name == state.selected), None)
    if marked is None or not _message(marked):
        return ()
    row = _row(marked, data.overview.as_of_ms, _widths(data.devices, width), is_marked=True)
    is_cut = not row.endswith(_message(marked))
    return (f"{state.selected}: {_word(marked)}: {_message(marked)}",) if is_cut else ()


def _wrapped(text: str, width: int) -> list[str]:
    """The lines of a sentence, broken at blanks; a longer word is broken where it must."""
    found = [""]
    for word in one_line(text).split():
        joined = f"{found[-1]} {word}".strip()
        if cell_len(joined) <= width or not found[-1]:
            found[-1] = joined
        else:
            found.append(word)
    return [part for line in found for part in chop_cells(line, max(2, width)) or [""]]


def _fit(text: str, width: int) -> str:
    """The text cut to the cells of the screen, with an ellipsis where it was cut."""
    clean = one_line(text)
    if cell_len(clean) <= width:
        return clean
    return set_cell_size(clean, max(0, width - 1)).rstrip() + "…"
