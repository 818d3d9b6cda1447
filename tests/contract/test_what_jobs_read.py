"""The tables and the queries of docs/jobs.md, on a database as the migrations make it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine

PAGE = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text()
SECTION = PAGE.partition("\n## What a job may read\n")[2].partition("\n## ")[0]
QUERIES = SECTION.partition("```sql\n")[2].partition("```")[0].strip().split("\n\n")


def test_every_column_that_jobs_may_read_exists(engine: Engine) -> None:
    inspector = sa.inspect(engine)
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", SECTION, re.MULTILINE)
    assert len(rows) == 6
    for table, text in rows:
        columns = {column["name"] for column in inspector.get_columns(table)}
        named = set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", text)))
        assert named
        assert named <= columns, table


@pytest.mark.parametrize("query", QUERIES, ids=["devices", "targets", "runs"])
def test_the_queries_run(engine: Engine, query: str) -> None:
    times = {"from_ms": 0, "to_ms": 86_400_000} if ":from_ms" in query else {}
    with engine.connect() as conn:
        assert conn.execute(sa.text(query), times).all() == []
