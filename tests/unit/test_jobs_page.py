"""docs/jobs.md equals the program: its example runs, its tables are complete."""

from __future__ import annotations

import dataclasses
import inspect
import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import sqlalchemy as sa

from poller.domain.jobs.job_health import JobState
from poller.domain.jobs.job_run import FailureCode
from poller.domain.jobs.job_terms import JobTerms
from poller.jobs import api

PAGE = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text()


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def table(text: str) -> dict[str, list[str]]:
    """The cells of each row whose first cell is code, by that code."""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            rows[cells[0].strip("`")] = cells[1:]
    return rows


def code(text: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_is_a_job_and_runs() -> None:
    """The code of the page is executed; its entry point has the name of the job."""
    text = section("Write one in ten lines")
    names: dict[str, Any] = {}
    exec(code(text, "python"), names)
    project = tomllib.loads(code(text, "toml"))["project"]
    ((name, value),) = project["entry-points"]["poller.jobs"].items()
    spec = names[value.partition(":")[2]]
    assert isinstance(spec, api.JobSpec)
    assert (spec.name, spec.terms.description) == (name, "Count the devices.")

    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    with engine.begin() as conn:
        conn.execute(sa.text("CREATE TABLE devices (name TEXT)"))
        conn.execute(sa.text("INSERT INTO devices VALUES ('a'), ('b')"))
    context: Any = SimpleNamespace(services=SimpleNamespace(engine=engine))
    assert spec(context) == api.Result(details={"devices": 2})
    engine.dispose()


def test_every_option_is_in_the_table_with_its_default() -> None:
    """Options are the parameters of `api.job` and the fields of the terms that an author gives."""
    rows = table(section("Every option"))
    parameters = inspect.signature(api.job).parameters
    made = {"schedule", "names_scopes", "names_plans"}  # from other parameters
    fields = {field.name: field for field in dataclasses.fields(JobTerms) if field.name not in made}
    given = {name for name, one in parameters.items() if one.kind is not one.VAR_KEYWORD}
    assert set(rows) == given | set(fields)

    for name, field in fields.items():
        if field.default not in (dataclasses.MISSING, ""):
            assert rows[name][0].strip("`") == shown(field.default), name


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(f"{each:g}" for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_every_state_and_code_is_explained() -> None:
    rows = table(section("States and codes"))
    assert set(rows) == {state.value for state in JobState} | {code.value for code in FailureCode}


def test_every_heading_is_linked() -> None:
    """The list at the head leads to the sections."""
    linked = set(re.findall(r"\]\(#([a-z-]+)\)", PAGE))
    titles = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^a-z -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert linked == anchors


def test_the_example_of_scopes_runs() -> None:
    """Complete with its imports: each site is a scope, and a run counts its devices."""
    names: dict[str, Any] = {}
    exec(code(section("Scopes and plans"), "python"), names)
    spec = names["devices_of_site"]
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    with engine.begin() as conn:
        conn.execute(sa.text("CREATE TABLE sites (id INTEGER, name TEXT)"))
        conn.execute(sa.text("CREATE TABLE devices (name TEXT, site_id INTEGER)"))
        conn.execute(sa.text("INSERT INTO sites VALUES (1, 'ams'), (2, 'fra')"))
        conn.execute(sa.text("INSERT INTO devices VALUES ('a', 1), ('b', 1), ('c', 2)"))
    services: Any = SimpleNamespace(engine=engine)
    found = spec.scopes(services, datetime.now(UTC))
    assert found == [api.Scope("site", "ams"), api.Scope("site", "fra")]
    context: Any = SimpleNamespace(services=services, scope=found[0])
    assert spec(context) == api.Result(details={"devices": 2})
    engine.dispose()


def test_the_jobs_of_the_trial_are_those_of_its_package() -> None:
    """Each entry point of its pyproject.toml is a job of that name in its module."""
    files = dict(re.findall(r"cat > (\S+) <<'END'\n(.*?)\nEND\n", PAGE, re.DOTALL))
    project = tomllib.loads(files["trial-jobs/pyproject.toml"])["project"]
    names: dict[str, Any] = {}
    exec(files["trial-jobs/trial_jobs.py"], names)
    for name, value in project["entry-points"]["poller.jobs"].items():
        assert value == f"trial_jobs:{name}"
        assert names[name].name == name
