"""Inventory files in three forms: written files are read back, and problems have their lines."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from poller import errors
from poller.cli.inventory import inventory_files
from poller.collectors.snmp.modules import yaml_text
from poller.domain.inventory import draft
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.scheduling.interval import Policy
from poller.errors import BadFile
from poller.service.inventory_forms import file_forms, value_limits
from poller.service.inventory_forms.inventory_rows import (
    TARGET_FIELDS,
    LineProblem,
    ParsedFile,
    grouped,
)

WORDS = st.text(st.sampled_from("abcXYZ019._:-"), min_size=1, max_size=8).filter(
    lambda w: not w.startswith("-")
)
NAMES = st.text(
    st.characters(categories=["L", "N", "P", "S"], exclude_characters="/\\"),
    min_size=1,
    max_size=12,
).filter(lambda text: not text.startswith("-"))
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3),
)
SCHEDULES = st.just({"policy": Policy.FIXED}) | st.fixed_dictionaries(
    {
        "policy": st.just(Policy.ADAPTIVE),
        "min_ms": st.integers(1_000, 10_000),
        "max_ms": st.integers(10**9, 2 * 10**9),
        "staleness": NAMES,
    }
)
TARGETS = st.builds(
    lambda schedule, **fields: TargetDraft(**fields, **schedule),
    schedule=SCHEDULES,
    name=NAMES,
    collector=NAMES,
    options=st.dictionaries(TEXTS, JSON_VALUES, max_size=3),
    credential=st.just("") | NAMES,
    requires=st.dictionaries(WORDS, WORDS, max_size=2),
    interval_ms=st.integers(10_000, 10**9),
    timeout_ms=st.integers(1, 9_999),
    enabled=st.booleans(),
)
DEVICES = st.builds(
    DeviceDraft,
    name=NAMES,
    address=st.sampled_from(["192.0.2.1", "::1", "sw.example"]),
    site=st.just("") | NAMES,
    credential=st.just("") | NAMES,
    tags=st.lists(WORDS, max_size=3).map(lambda words: tuple(sorted(set(words)))),
    requires=st.dictionaries(WORDS, WORDS, max_size=2),
    enabled=st.booleans(),
    parent=st.just("") | NAMES,
)
FLEETS = st.lists(
    st.tuples(DEVICES, st.lists(TARGETS, max_size=3, unique_by=lambda t: t.name)),
    max_size=4,
    unique_by=lambda row: row[0].name,
)


def read(path: Path, text: str, name: str) -> ParsedFile:
    (path / name).write_text(text, encoding="utf-8", newline="")
    return inventory_files.read(path / name)


def named(name: str) -> DeviceDraft:
    return DeviceDraft(name, "::1", "", "", tags=("+1", "@a"), requires={}, enabled=True, parent="")


def drafts(found: ParsedFile) -> list[tuple[DeviceDraft, list[TargetDraft]]]:
    made = []
    for raw in found.devices:
        device, problems = draft.device(raw.fields)
        assert problems == []
        targets = [
            draft.target(each.fields, lambda collector, options: options) for each in raw.targets
        ]
        assert [problem for _, wrong in targets for problem in wrong] == []
        made.append((device, [target for target, _ in targets]))
    return made


@pytest.mark.parametrize(
    ("form", "raw"), [("csv", False), ("csv", True), ("json", False), ("yaml", False)]
)
@given(fleet=FLEETS)
@example(fleet=[(named("=cmd"), []), (named("'=cmd"), []), (named("''@x"), []), (named("'x"), [])])
def test_a_written_file_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    form: str,
    raw: bool,
    fleet: list[tuple[DeviceDraft, list[TargetDraft]]],
) -> None:
    """Every field of every device and target survives, whatever characters it has."""
    text = io.StringIO(newline="")
    assert file_forms.write(text, form, fleet, raw) == len(fleet)
    found = read(tmp_path_factory.getbasetemp(), text.getvalue(), f"fleet.{form}")
    assert found.problems == []
    assert drafts(found) == fleet


@given(fleet=FLEETS)
@example(fleet=[(named("=cmd"), []), (named("@x"), [])])
def test_no_cell_of_a_csv_is_a_formula(fleet: list[tuple[DeviceDraft, list[TargetDraft]]]) -> None:
    """A spreadsheet would calculate it, and could send the result away."""
    text = io.StringIO(newline="")
    file_forms.write(text, "csv", fleet)
    cells = itertools.chain.from_iterable(csv.reader(io.StringIO(text.getvalue())))
    assert [cell for cell in cells if cell.lstrip(" ").startswith(("=", "+", "-", "@"))] == []


CSV_HEAD = "name,address,collector,interval\n"


def lines_of(found: ParsedFile) -> list[tuple[int, str]]:
    return [(problem.line, problem.field) for problem in found.problems]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name,adress\nsw1,::1\n", [(1, "adress")]),
        ("address\n::1\n", [(1, "name")]),
        ("name,name\na,b\n", [(1, "name")]),
        (CSV_HEAD + "sw1,::1,snmp,60s\nsw2,::1\n", [(3, "line")]),
        (CSV_HEAD + "sw1,::1,snmp,60s,what\n", [(2, "line")]),
        (CSV_HEAD + "sw1,::1,snmp,60s\n\nsw1,::2,snmp,60s\n", [(4, "address")]),
        ('name,options\n"sw1","{bad"\n', [(2, "options")]),
        ('name,options\n"sw1","port"\n', [(2, "options")]),
        ('name,address\n"two\nlines",::1\nsw2\n', [(4, "line")]),
    ],
)
def test_wrong_lines_of_a_csv_file_are_found(
    tmp_path: Path, text: str, expected: list[tuple[int, str]]
) -> None:
    """Problems have line and column, also after blank lines and records of several lines."""
    assert lines_of(read(tmp_path, text, "x.csv")) == expected


def test_a_semicolon_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    """Spreadsheets in many countries write such files."""
    found = read(tmp_path, "\ufeffname;address;tags\r\nsw1;::1;a b\r\n", "x.csv")
    assert [raw.fields for raw in found.devices] == [
        {"name": "sw1", "address": "::1", "tags": ["a", "b"]}
    ]


def test_options_in_a_csv_cell_may_be_plain_words(tmp_path: Path) -> None:
    """`key=value` words are easier to type than JSON."""
    found = read(tmp_path, "name,collector,options\nsw1,snmp,port=1161 modules='a b'\n", "x.csv")
    assert found.devices[0].targets[0].fields["options"] == {"port": "1161", "modules": "a b"}


def test_lines_of_one_device_become_one_device(tmp_path: Path) -> None:
    """Each line adds a target, which keeps its line."""
    found = read(
        tmp_path, CSV_HEAD + "a,::1,snmp,60s\nb,::1,snmp,60s\na,::1,routeros,5m\n", "x.csv"
    )
    assert [(raw.fields["name"], [t.line for t in raw.targets]) for raw in found.devices] == [
        ("a", [2, 4]),
        ("b", [3]),
    ]


def test_json_devices_know_their_lines(tmp_path: Path) -> None:
    """A bare list and an object work, with any indentation."""
    devices = [{"name": "a", "targets": [{"collector": "snmp"}]}, {"name": "b"}, 5]
    for text in (json.dumps(devices, indent=2), json.dumps({"devices": devices}, indent="\t")):
        found = read(tmp_path, text, "x.json")
        lines = text.splitlines()
        assert ['"name": "b"' in lines[raw.line] for raw in found.devices] == [False, True]
        assert lines_of(found) == [
            (lines.index(next(x for x in lines if x.strip() == "5")) + 1, "device")
        ]


YAML = """\
devices:
  - name: a
    address: ::1
    targets:
      - collector: snmp
        interval: 5 min
  - name: b
    site: 7
  - oops
"""


def test_yaml_fields_know_their_lines(tmp_path: Path) -> None:
    """Fields of targets have lines, too."""
    found = read(tmp_path, YAML, "x.yaml")
    a, b = found.devices
    assert a.targets[0].problem("x", "interval", "m")[1:3] == (6, "targets[0].interval")
    assert b.problem("x", "site", "m")[1:3] == (8, "site")
    assert lines_of(found) == [(9, "device")]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("x.json", '[\n{"name": "a"},\n{"name": }\n]', 3),
        ("x.json", '[{"name": "a"}', 1),
        ("x.json", '"devices"', 1),
        ("x.yaml", "- name: a\n- name: [\n", 3),
        ("x.yaml", "just text", 1),
        ("x.yaml", "", 1),
        ("x.csv", 'name\n"open\n', 2),
    ],
)
def test_a_file_that_is_not_of_its_form_is_refused_with_the_line(
    tmp_path: Path, name: str, text: str, line: int
) -> None:
    """There is one problem, the first."""
    with pytest.raises(BadFile) as caught:
        read(tmp_path, text, name)
    assert [problem.line for problem in caught.value.details] == [line]


def test_text_that_is_not_utf_8_is_refused_with_the_line(tmp_path: Path) -> None:
    """A Latin-1 file does not become question marks."""
    (tmp_path / "x.csv").write_bytes(b"name\nok\ncaf\xe9\n")
    with pytest.raises(BadFile) as caught:
        inventory_files.read(tmp_path / "x.csv")
    assert [problem.line for problem in caught.value.details] == [3]


def test_a_yaml_file_cannot_run_code(tmp_path: Path) -> None:
    """Tags of Python objects are refused."""
    with pytest.raises(BadFile):
        read(tmp_path, "- !!python/object/apply:os.system ['true']\n", "x.yaml")


def test_an_unknown_suffix_asks_for_the_format(tmp_path: Path) -> None:
    """With the format given, the file is read."""
    (tmp_path / "fleet.txt").write_text("name\nsw1\n")
    with pytest.raises(errors.InvalidInput, match=r"fleet\.txt"):
        inventory_files.read(tmp_path / "fleet.txt")
    assert len(inventory_files.read(tmp_path / "fleet.txt", "csv").devices) == 1


def test_equal_inventories_are_equal_files() -> None:
    """The order in which a database returns keys does not matter."""
    texts = set()
    for order in (1, -1):
        options = dict([("b", {"y": 1, "x": [{"q": 1, "p": 2}]}), ("a", 2)][::order])
        requires = dict([("zone", "dmz"), ("site", "ams")][::order])
        device = DeviceDraft("sw1", "::1", "", "", (), requires, True)
        target = TargetDraft("t", "snmp", options, "", requires, 60_000, 5_000, True, Policy.FIXED)
        texts.add(tuple(_written(form, [(device, [target])]) for form in ("csv", "json", "yaml")))
    assert len(texts) == 1


def _written(form: str, fleet: list[tuple[DeviceDraft, list[TargetDraft]]]) -> str:
    text = io.StringIO(newline="")
    file_forms.write(text, form, fleet)
    return text.getvalue()


def test_only_an_adaptive_target_has_bounds_in_the_file() -> None:
    """The fields are in the order of the documentation."""
    fixed = TargetDraft("t", "snmp", {}, "", {}, 60_000, 5_000, True, Policy.FIXED)
    adaptive = TargetDraft(
        "t", "snmp", {}, "", {}, 10_000, 5_000, True, Policy.ADAPTIVE, 5_000, 300_000, "age"
    )
    first, second = (
        json.loads(_written("json", [(DeviceDraft("a"), [t])]))[0]["targets"][0]
        for t in (fixed, adaptive)
    )
    assert list(first) == [
        "name",
        "collector",
        "options",
        "policy",
        "interval",
        "timeout",
        "credential",
        "requires",
        "enabled",
    ]
    assert list(second) == list(TARGET_FIELDS)
    assert (second["min"], second["interval"], second["max"], second["staleness"]) == (
        "5s",
        "10s",
        "5m",
        "age",
    )


def test_equal_problems_become_one_group() -> None:
    """Three lines are named, the others counted; groups are in the order of their first lines."""
    many = [
        LineProblem("f.csv", line, "name", "is taken", "add --update") for line in (9, 3, 4, 5, 6)
    ]
    one = LineProblem("f.csv", 4, "interval", "is bad")
    groups = grouped([*many, one, one])
    assert [str(group) for group in groups] == [
        "f.csv: line 3, 4, 5 and 2 more: name: is taken; add --update",
        "f.csv:4: interval: is bad",
    ]
    assert groups[0].lines == (3, 4, 5, 6, 9)
    assert str(grouped(many[:2])[0]) == "f.csv: line 3, 9: name: is taken; add --update"


_BOMB = "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 9)
)
_DEEP = "[" * 100_000
_HOSTILE = {
    "an alias bomb": (
        "x.yaml",
        f"a0: &a0 x\n{_BOMB}devices:\n- {{name: a, targets: [{{options: *a8}}]}}\n",
        "values, with aliases expanded",
    ),
    "an alias bomb in one field": (
        "x.yaml",
        f"a0: &a0 x\n{_BOMB.partition('a6')[0]}devices:\n- {{name: a, tags: *a5}}\n",
        "more than 10,000 values",
    ),
    "an alias of itself": ("x.yaml", "- &a {name: a, options: *a}\n", "alias"),
    "many brackets in YAML": ("x.yaml", _DEEP, "more than 32 levels"),
    "many brackets in JSON": ("x.json", _DEEP, "nested too deeply"),
    "closed brackets in JSON": ("x.json", _DEEP + "]" * 100_000, "nested too deeply"),
    "deep options in JSON": (
        "x.json",
        '[{"name": "a", "targets": [{"options": {"b": ' + "[" * 40 + "]" * 40 + "}}]}]",
        "more than 32 levels",
    ),
    "deep options in CSV": (
        "x.csv",
        'name,address,collector,options\na,b,snmp,"{""b"": ' + _DEEP + '"\n',
        "nested too deeply",
    ),
    "a huge number in JSON": ("x.json", '[{"name": ' + "9" * 5_000 + "}]", "digits"),
    "a number that is none": ("x.json", '[{"name": NaN}]', "NaN"),
    "a huge field": ("x.csv", f"name\n{'a' * 200_000}\n", "field larger than field limit"),
    "a NUL byte in CSV": ("x.csv", "name,address\na\0b,c\n", "NUL"),
    "a NUL byte in JSON": ("x.json", '[{"name": "a\\u0000b"}]', "NUL"),
    "a NUL byte in YAML": ("x.yaml", '- name: "a\\0b"\n', "NUL"),
    "half a character in JSON": ("x.json", '[{"name": "\\ud800"}]', "half a character"),
    "a key that is a list": ("x.yaml", "- {name: a, options: {[1]: 2}}\n", "no plain text"),
    "a tag": ("x.yaml", "- !!python/name:os.system {}\n", "tag"),
    "two documents": ("x.yaml", "- name: a\n---\n- name: b\n", "document"),
}


@pytest.mark.parametrize("what", _HOSTILE)
def test_a_hostile_file_is_refused_with_a_reason(tmp_path: Path, what: str) -> None:
    """The file and the line are named; nothing of the file is used."""
    name, text, reason = _HOSTILE[what]
    path = tmp_path / name
    path.write_text(text)
    problems: list[object] = []
    try:
        problems += inventory_files.read(path).problems
    except errors.BadFile as error:
        problems += error.details
    texts = [str(problem) for problem in problems]
    assert any(reason in text and text.startswith(name) for text in texts), texts


def test_a_field_may_be_as_deep_as_in_a_module_file() -> None:
    """One limit for all files that an operator writes."""
    assert value_limits.MAX_DEPTH == yaml_text.MAX_DEPTH


@pytest.mark.parametrize("form", ["csv", "json", "yaml"])
def test_a_file_larger_than_any_inventory_is_not_read(form: str) -> None:
    """An endless file is read up to the limit only."""
    with pytest.raises(errors.InvalidInput, match="more than 200,000,000 bytes"):
        inventory_files.read(Path("/dev/zero"), form)
