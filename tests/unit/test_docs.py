"""The reference pages equal the program. `UPDATE_DOCS=1 pytest tests/unit/test_docs.py` rewrites them."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from poller import errors
from poller.cli.main import Root
from poller.collectors import descriptions
from poller.domain.failures import error_codes
from poller.presentation import code_explanations
from poller.settings import Settings
from poller.settings.setting_sources import OTHER_NAMES, SECRETS
from poller.sinks import api as sink_api
from poller.sinks import registry as sink_registry
from poller.sinks import sink_options
from poller.state import keys
from poller.web.api import api_v1

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"


def check(name: str, text: str) -> None:
    path = REFERENCE / name
    if os.environ.get("UPDATE_DOCS"):
        path.write_text(text)
    assert path.read_text() == text, (
        f"docs/reference/{name} is out of date: UPDATE_DOCS=1 pytest tests/unit/test_docs.py"
    )


def test_every_setting_is_documented() -> None:
    """Name, variable, default and meaning, as the program has them."""
    head = (
        "# Settings\n\nEnvironment over `poller.toml` over default; `poller settings` shows each value and where it came from. Durations are in seconds.\n"
        "A setting marked * can also be given as a file: `POLLER_REDIS_URL_FILE=/run/secrets/redis_url`.\n\n"
        "| key in poller.toml | environment | default | meaning |\n|---|---|---|---|\n"
    )
    rows = [
        f"| `{name}`{'*' if name in SECRETS else ''} | `POLLER_{name.upper()}` | {_default(field.default)} | {field.description} |\n"
        for name, field in Settings.model_fields.items()
    ]
    others = [f"- `{name}`: {meaning}\n" for name, meaning in OTHER_NAMES.items()]
    check(
        "settings.md",
        head + "".join(rows) + "\nRead by single commands, no settings:\n\n" + "".join(others),
    )


def test_every_option_of_a_sink_is_documented() -> None:
    """The page lists the options of every sink of ours, as `poller sinks options` does."""
    parts = [
        "# Options of sinks\n\nThe keys of a table `[sink.NAME]` in `poller.toml`, by `kind`. [Sinks](../sinks.md) has the how-to. "
        "`poller sinks options KIND` prints the same, also for sinks of other packages.\n"
    ]
    for name, admitted in sorted(sink_registry.survey().plugins.items()):
        if not admitted.sink.__module__.startswith("poller."):
            continue
        parts.append(f"\n## {name}\n\n")
        if sink_options.model_of(admitted.sink) is None:
            parts.append("No options.\n")
            continue
        parts.append("| option | type | default | meaning |\n|---|---|---|---|\n")
        parts += [_option_row(option) for option in descriptions.options(admitted.sink)]
    check("sink-options.md", "".join(parts))


def _option_row(option: dict[str, Any]) -> str:
    assert option["description"], f"the option {option['name']} has no description"
    default = "required" if option["required"] else _default(option["default"])
    if option["default"] in ((), {}):
        default = ""
    bar = "\\|"
    kind = option["type"].replace("|", bar)
    return (
        f"| `{option['name']}` | {kind} | {default} | {option['description'].replace('|', bar)} |\n"
    )


POLICY_HEAD = """
## Codes in runs, statuses and metrics

The list is closed: an error of a plugin gets the nearest of these codes. A transient fault may pass by itself; a permanent one
lasts until an operator or an author changes something. An open breaker stays open after any failure but a finding. The readings of a finding are
stored although the poll failed. A device is down while none of its targets responds; polls without a response count towards a
[dark site](../failures.md#sites).

| code | meaning | what to do | category | retried | breaker opens | dead letter | finding | says about the device |
|---|---|---|---|---|---|---|---|---|
"""


def _policy_row(row: error_codes.ErrorCode) -> str:
    flags = {True: "yes", False: "no"}
    cells = [
        f"`{row.code}`",
        row.meaning,
        row.hint,
        row.category.value,
        flags[row.retried],
        row.breaker.value,
        row.dead_letter.value,
        flags[row.finding],
        row.reach.value,
    ]
    return f"| {' | '.join(cells)} |\n"


def test_tables_of_sinks_in_the_docs_are_valid() -> None:
    """An operator who copies a table gets a sink, not an error."""
    checked = 0
    for page in sorted(DOCS.glob("*.md")):
        for block in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL):
            tables = tomllib.loads(block).get("sink", {})
            # A second example of a page leaves out what the first one has.
            tables = {name: {**_LEFT_OUT.get(name, {}), **table} for name, table in tables.items()}
            sink_registry.check(tables, tables)
            checked += len(tables)
    assert checked > 5


_LEFT_OUT = {"prom": {"kind": "remote_write", "url": "http://prometheus.example.net"}}


def test_every_error_is_documented() -> None:
    """Code, exit code and meaning of every class of the tree; every code a run can carry; every exit code."""
    found = [
        item
        for _, item in inspect.getmembers(errors, inspect.isclass)
        if issubclass(item, errors.PollerError)
    ]
    meanings = code_explanations.tree()
    assert set(found) - set(meanings) == {errors.PollerError}
    rows = [
        f"| {kind.code} | {kind.exit_code} | {kind.__name__} | {text} |\n"
        for kind, text in meanings.items()
    ]
    exits = [f"| {code} | {meaning} |\n" for code, meaning in code_explanations.EXIT_CODES.items()]
    codes = [_policy_row(row) for row in error_codes.TABLE.values()]
    head = "# Errors\n\nEvery error a command prints has a code: `error[P101]: what`, then `cause:` and `try:` where known. `poller explain CODE` prints the same rows.\n\n"
    check(
        "errors.md",
        head
        + "| code | exit | error | meaning |\n|---|---|---|---|\n"
        + "".join(rows)
        + POLICY_HEAD
        + "".join(codes)
        + "\n## Exit codes\n\n| code | meaning |\n|---|---|\n"
        + "".join(exits),
    )


def test_every_redis_key_is_documented() -> None:
    """The table at the head of state/keys.py names every key, and is the reference."""
    text = keys.__doc__ or ""
    assert all(f"`{name}`" in text for name in keys.NAMES)
    check("redis-keys.md", "# Redis keys\n\n" + text.strip() + "\n")


def test_every_command_is_documented() -> None:
    """The page lists every command with its help."""
    rows = [f"| `poller {b.name}` | {b.help} |\n" for b in Root.branches]
    head = "# Commands\n\n`poller COMMAND --help` tells the rest. `--json` gives one JSON object where a command lists or shows.\n\n"
    check("commands.md", head + "| command | what it does |\n|---|---|\n" + "".join(rows))


def test_the_openapi_document_is_shipped() -> None:
    """The file equals the document that the web role serves."""
    app = FastAPI()
    api_v1.add_routes(app)
    text = json.dumps(api_v1.document(app), indent=1, ensure_ascii=False, sort_keys=True)
    check("openapi.json", text + "\n")


def test_every_field_of_a_sample_is_documented() -> None:
    """An author of a sink finds all that a sample holds in one place."""
    text = (DOCS / "plugins.md").read_text()
    fields = [field.name for field in dataclasses.fields(sink_api.Sample)]
    assert [name for name in fields if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize(
    "page", sorted(DOCS.rglob("*.md")) + [ROOT / "README.md"], ids=lambda page: page.name
)
def test_links_and_files_named_in_the_docs_exist(page: Path) -> None:
    """Relative links, pictures, and paths into the package."""
    text = page.read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []
    parts = "beat|cli|collectors|db|domain|security|sim|sinks|state|tasks|web|workers|observability"
    named = re.findall(rf"`((?:{parts})/[a-z_/]+\.(?:py|lua))", text)
    assert [name for name in named if not (ROOT / "poller" / name).exists()] == []


def _default(value: Any) -> str:
    shown = value.get_secret_value() if isinstance(value, SecretStr) else value
    if isinstance(shown, tuple):
        shown = ",".join(shown)
    return "" if shown in (None, "", {}) else f"`{shown}`"


@pytest.mark.parametrize(
    "page",
    [*sorted(DOCS.glob("*.md")), *(ROOT / name for name in ("README.md", "CHANGELOG.md"))],
    ids=lambda page: page.name,
)
def test_paragraphs_wrap_at_120_columns(page: Path) -> None:
    """Code, tables and lines that cannot be broken are free."""
    long_lines = []
    is_code = False
    for line in page.read_text().splitlines():
        if line.lstrip().startswith("```"):
            is_code = not is_code
        is_table = line.startswith("|")
        is_indented = line.startswith("    ")
        is_breakable = " " in line.strip().removeprefix("- ")
        if len(line) > 120 and not is_code and not is_table and not is_indented and is_breakable:
            long_lines.append(line)
    assert long_lines == []
