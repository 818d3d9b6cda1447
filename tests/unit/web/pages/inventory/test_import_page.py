"""The page of an import: problems by line, and a preview in the words of a file."""

from __future__ import annotations

import pytest

from poller import errors
from poller.db.inventory.imports import Imported
from poller.domain.inventory.import_changes import FieldChange, RowChange
from poller.service.inventory.inventory_import import ImportResult
from poller.service.inventory.new_sites import NewSite
from poller.service.inventory_forms import file_forms
from poller.service.inventory_forms.inventory_rows import LineProblem, ProblemGroup
from poller.web.pages.inventory import import_page
from poller.web.pages.inventory.import_page import FieldLine, ImportText, ProblemLine


def test_a_problem_of_many_lines_is_one_line_that_counts_them() -> None:
    """A problem of the whole file has no line."""
    error = errors.BadFile("bad")
    error.details = [
        ProblemGroup("f", 2, "interval", "no duration", "write 5m", (2, 3, 4, 9)),
        LineProblem("f", 0, "header", "the column is missing"),
    ]
    assert import_page.problem_lines(error) == [
        ProblemLine("2, 3, 4 and 1 more", "interval", "no duration", "write 5m"),
        ProblemLine("", "header", "the column is missing", ""),
    ]


def test_a_preview_has_each_field_before_and_after() -> None:
    """Changed rows come before new ones; options are fields of their own."""
    changed = [
        FieldChange("options", {"port": 161, "context": "a"}, {"port": 1161, "context": "a"}),
        FieldChange("interval", 60_000, 300_000),
        FieldChange("requires", {}, {"zone": "dmz"}),
    ]
    rows = [
        RowChange("new", "", True, [FieldChange("address", None, "192.0.2.9")]),
        RowChange("sw1", "snmp", False, changed),
    ]
    counts = Imported(1, 0, 0, 1, 2, 3)
    done = ImportResult(counts, [NewSite("wset", "west")], ["1 target: risky"], rows, "d1")
    view = import_page.preview(done)
    assert [(row.name, row.word) for row in view.rows] == [
        ("sw1/snmp", "target"),
        ("new", "new device"),
    ]
    assert view.rows[0].fields == [
        FieldLine("option port", "161", "1161"),
        FieldLine("interval", "1m", "5m"),
        FieldLine("requires", "", "zone=dmz"),
    ]
    assert view.sentence == (
        "Would be done: 1 device added, 0 changed, 2 left alone; "
        "0 targets added, 1 changed, 3 left alone."
    )
    assert view.notes == ["1 target: risky", "makes the new site wset; did you mean west?"]
    assert (view.digest, view.has_changes, view.more) == ("d1", True, 0)


def test_a_preview_lists_a_bounded_number_of_rows() -> None:
    """The rest is counted."""
    rows = [RowChange(f"d{number}", "", True, []) for number in range(import_page.MOST_ROWS + 7)]
    view = import_page.preview(ImportResult(Imported(207, 0, 0, 0), [], (), rows, "d"))
    assert (len(view.rows), view.more) == (import_page.MOST_ROWS, 7)


def test_the_command_previews_the_same_file() -> None:
    """No target is an empty collector for the command."""
    sent = ImportText("x", updates=True, collector=import_page.NO_TARGET)
    assert import_page.command(sent, "yaml") == (
        "poller device import FILE.yaml --update --collector '' --dry-run"
    )


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("name,address\nsw1,192.0.2.1\n", "csv"),
        ("name;address\n", "csv"),
        ("\ufeffname\n", "csv"),
        ("- name: sw1\n", "yaml"),
        ("---\n- name: sw1\n", "yaml"),
        ("# a comment\n\ndevices:\n  - name: sw1\n", "yaml"),
        ('[{"name": "sw1"}]', "json"),
        ('\n {"devices": []}', "json"),
        ("", "csv"),
    ],
)
def test_the_form_of_a_text_is_seen(text: str, form: str) -> None:
    """A pasted text has no name that tells it."""
    assert file_forms.guess(text) == form
