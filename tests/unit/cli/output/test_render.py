"""Output for people, pipes and programs, and the form of an error."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from poller import errors
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, column, moment, plain

COLUMNS = (
    column("NAME", "name"),
    column("TAGS", "tags"),
    Column("SIZE", lambda item: str(item["size"]), right=True),
)
ITEMS = [
    {"name": "sw1", "tags": ["a", "b"], "size": 1},
    {"name": "tab\there\x1b[31m", "tags": [], "size": 22},
]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "POLLER_ACCESSIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    render.begin(as_json=False)


def terminal(monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)


def test_a_pipe_gets_tab_separated_lines_with_a_header(capsys: pytest.CaptureFixture[str]) -> None:
    """Each item is one line; tabs and control characters of a value cannot break it."""
    render.listing("s/1", ITEMS, COLUMNS, as_json=False)
    assert capsys.readouterr().out == "name\ttags\tsize\nsw1\ta b\t1\ntab here [31m\t\t22\n"


def test_a_program_gets_one_object_with_a_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """The object has schema, time, items, and the fields that the command adds."""
    render.listing("s/1", ITEMS, COLUMNS, as_json=True, next="sw1")
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["items"], found["next"]) == ("s/1", ITEMS, "sw1")
    assert datetime.fromisoformat(found["as_of"]).tzinfo is not None


def test_a_terminal_gets_a_table_and_no_foreign_escape_codes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of devices are neither markup nor terminal codes."""
    terminal(monkeypatch, "stdout")
    monkeypatch.setenv("NO_COLOR", "1")
    render.listing(
        "s/1", [{"name": "[red]x\x1b[31m", "tags": ["t"], "size": 1}], COLUMNS, as_json=False
    )
    out = capsys.readouterr().out
    assert "NAME" in out
    assert "[red]x" in out
    assert "\x1b[31m" not in out


def test_a_state_has_its_colour_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cell of the state, not its neighbours; NO_COLOR and pipes get plain text."""
    state = Column("STATE", lambda item: item["state"], style=lambda item: item["style"])
    columns = (column("NAME", "name"), state, column("LAST", "last"))
    items = [
        {"name": "prune", "state": "ok", "style": "", "last": "a"},
        {"name": "sweep", "state": "failing", "style": "red", "last": "b"},
    ]
    render.listing("s/1", items, columns, as_json=False)
    assert "\x1b" not in capsys.readouterr().out

    terminal(monkeypatch, "stdout")
    monkeypatch.setenv("COLUMNS", "80")
    render.listing("s/1", items, columns, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == "prune  ok       a"
    assert lines[-1] == "sweep  \x1b[31mfailing\x1b[0m  b"

    monkeypatch.setenv("NO_COLOR", "1")
    render.listing("s/1", items, columns, as_json=False)
    assert capsys.readouterr().out.splitlines()[-1] == "sweep  failing  b"


def test_a_message_below_its_row_has_no_colour_of_a_cell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The colour of a cell ends with the line of its row."""
    state = Column("STATE", lambda item: item["state"], fit=Fit.WHOLE, style=lambda _: "red")
    columns = (column("NAME", "name", fit=Fit.WHOLE), state, column("ERROR", "error", fit=Fit.REST))
    item = {"name": "sweep", "state": "failing", "error": "timeout: " + "x" * 40}
    terminal(monkeypatch, "stdout")
    monkeypatch.setenv("COLUMNS", "30")
    render.listing("s/1", [item], columns, as_json=False)
    row, below = capsys.readouterr().out.splitlines()[-2:]
    assert row == "sweep  \x1b[31mfailing\x1b[0m"
    assert below.startswith("  timeout: x")
    assert "\x1b" not in below


def test_accessible_output_has_no_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A screen reader gets sentences."""
    monkeypatch.setenv("POLLER_ACCESSIBLE", "1")
    terminal(monkeypatch, "stdout")
    render.listing("s/1", ITEMS[:1], COLUMNS, as_json=False)
    assert capsys.readouterr().out == "name: sw1; tags: a b; size: 1\n"


def test_an_error_says_what_why_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """Errors go to stderr; stdout is for data."""
    render.error(errors.NotFound("no device", "a typing error", "poller device list"))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error[P101]: no device\n  cause: a typing error\n  try: poller device list\n"


def test_an_error_for_a_program_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON has the same parts."""
    render.begin(as_json=True)
    render.error(errors.NotFound("no device", "why", "do"))
    assert json.loads(capsys.readouterr().err) == {
        "error": {"code": "P101", "message": "no device", "cause": "why", "try": "do"}
    }


def test_an_error_never_shows_a_password(capsys: pytest.CaptureFixture[str]) -> None:
    """Message, cause and hint are redacted."""
    url = "redis://u:hunter22@h"
    render.error(errors.PollerError(url, url, url))
    assert "hunter22" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("is_terminal", "names", "coloured"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"CLICOLOR_FORCE": "1"}, True),
        (False, {"CLICOLOR_FORCE": "0"}, False),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_follow_the_terminal_and_the_environment(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    is_terminal: bool,
    names: dict[str, str],
    coloured: bool,
) -> None:
    """NO_COLOR wins over every other variable."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    render.error(errors.NotFound("x"))
    assert ("\x1b[" in capsys.readouterr().err) is coloured


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "yes"),
        (False, "no"),
        ({"a": [1, 2], "b": "x"}, "a=1,2 b=x"),
        (
            {"tls": True, "every": {"routes": 900.0, "dns": 1.5}},
            "tls=true every=routes=900,dns=1.5",
        ),
        (("a", "b"), "a b"),
        (datetime(2026, 1, 2, 3, 4, 5, 678, UTC), "2026-01-02T03:04:05Z"),
    ],
)
def test_values_as_people_read_them(value: object, text: str) -> None:
    """Values are printed without brackets, quotes and Python's True."""
    assert plain(value) == text


def test_names_stay_whole_while_texts_wrap(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a narrow screen a column that may wrap takes more lines, and no word is lost."""
    terminal(monkeypatch, "stdout")
    monkeypatch.setenv("COLUMNS", "60")
    columns = (column("NAME", "name"), column("MEANING", "meaning", fit=Fit.WRAP))
    words = [f"word{number}" for number in range(30)]
    render.listing(
        "s/1",
        [{"name": "a-rather-long-name-of-a-device", "meaning": " ".join(words)}],
        columns,
        as_json=False,
    )
    out = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "a-rather-long-name-of-a-device" in out
    assert [word for word in out.split() if word.startswith("word")] == words
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 60


RUN_COLUMNS = (
    moment("AT", "at"),
    column("TARGET", "target", fit=Fit.WHOLE),
    column("CODE", "code", fit=Fit.WHOLE),
    column("TRY", "try", right=True, fit=Fit.WHOLE, spare=1),
    column("RUNNER", "runner", fit=Fit.WHOLE, spare=2),
    column("MESSAGE", "message", fit=Fit.REST),
)
RUN = {
    "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "target": "sw-sto-0012/snmp",
    "code": "device_timeout",
    "try": 1,
    "runner": "worker-1@a-host",
    "message": " ".join(f"word{number}" for number in range(40)),
}


def drawn(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    run: dict[str, object],
) -> tuple[list[str], str]:
    """The lines of a table on a screen of this width, without escape codes, and the notes."""
    terminal(monkeypatch, "stdout")
    monkeypatch.setenv("COLUMNS", str(width))
    render.listing("s/1", [run], RUN_COLUMNS, as_json=False)
    out, err = capsys.readouterr()
    return re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines(), err


@pytest.mark.parametrize(
    ("width", "lines", "left_out"),
    [
        (60, 4, "RUNNER"),
        (76, 4, ""),
        (80, 3, "TRY, RUNNER"),
        (95, 3, "RUNNER"),
        (110, 3, ""),
        (160, 3, ""),
    ],
)
def test_times_targets_and_codes_are_whole_on_every_screen(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    lines: int,
    left_out: str,
) -> None:
    """The message is cut to one line, in its row or below; columns left out are named."""
    found, notes = drawn(capsys, monkeypatch, width, RUN)
    assert len(found) == lines
    assert max(map(len, found)) <= width
    assert found[2].split()[:3] == ["2026-01-02T03:04:05Z", "sw-sto-0012/snmp", "device_timeout"]
    assert "word0" in found[-1]
    assert found[-1].endswith("…")
    assert notes == (
        f"no room for {left_out}: a wider terminal or --json shows all\n" if left_out else ""
    )


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (50, ["ifHCInOctets", "ifName=GigabitEthernet1/0/24", "▁▂▃"]),
        (45, ["ifHCInOctets", "ifName=GigabitEthernet1/0/24"]),
        (30, ["ifHCInOctets", "ifName=GigabitE…"]),
    ],
)
def test_labels_keep_their_width_while_spare_columns_can_go(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, row: list[str]
) -> None:
    """The plot is left out before a label is cut; a label is cut if no column can go."""
    terminal(monkeypatch, "stdout")
    monkeypatch.setenv("COLUMNS", str(width))
    labels = Column("LABELS", lambda item: str(item["labels"]), minimum=32)
    columns = (
        column("METRIC", "metric", fit=Fit.WHOLE),
        labels,
        column("PLOT", "plot", fit=Fit.WHOLE, spare=1),
    )
    item = {"metric": "ifHCInOctets", "labels": "ifName=GigabitEthernet1/0/24", "plot": "▁▂▃"}
    render.listing("s/1", [item], columns, as_json=False)
    assert capsys.readouterr().out.splitlines()[2].split() == row


def test_a_row_without_a_message_has_no_line_below(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other rows have their message below them."""
    terminal(monkeypatch, "stdout")
    monkeypatch.setenv("COLUMNS", "60")
    render.listing("s/1", [RUN, {**RUN, "message": ""}], RUN_COLUMNS, as_json=False)
    assert len(capsys.readouterr().out.splitlines()) == 2 + 2 + 1


def test_wide_characters_count_twice(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns stay aligned, and no line is wider than the screen."""
    found, _ = drawn(
        capsys, monkeypatch, 110, {**RUN, "target": "交換機/snmp", "message": "交" * 100}
    )
    assert found[2].index("device_timeout") == found[0].index("CODE") - 3
    assert found[2].endswith("…")
    assert len(found[2]) + 3 + found[2].split()[-1].count("交") <= 110


def test_a_time_of_today_has_no_date_on_a_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe gets the date and the time."""
    now = datetime.now(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    before = midnight - timedelta(seconds=1)
    render.listing("s/1", [{**RUN, "at": midnight}], RUN_COLUMNS, as_json=False)
    assert f"{midnight:%Y-%m-%d}T00:00:00Z\t" in capsys.readouterr().out
    assert drawn(capsys, monkeypatch, 160, {**RUN, "at": midnight})[0][2].startswith(
        "00:00:00Z  sw"
    )
    assert drawn(capsys, monkeypatch, 160, {**RUN, "at": before})[0][2].startswith(
        f"{before:%Y-%m-%d}T23:59:59Z"
    )


def test_a_long_line_is_wrapped_on_a_terminal_and_whole_in_a_pipe() -> None:
    """A wrapped line goes on below its text; a name that is wider than the screen stays whole."""
    text = "  worker     " + " ".join(["w1@pop"] * 20)
    terminal = Console(width=80, force_terminal=True)
    first, *others = render.wrapped(text, terminal, indent=13)
    assert max(map(len, [first, *others])) <= 80
    assert [line[:14] for line in others] == [" " * 13 + "w"] * len(others)
    assert render.wrapped(text, Console(width=80, force_terminal=False), indent=13) == [text]
    assert render.wrapped("x" * 99, terminal, indent=0) == ["x" * 99]
    assert render.wrapped("", terminal, indent=0) == [""]
