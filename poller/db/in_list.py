"""`column among values` for long lists: one parameter and one fixed text, however many values there are."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class _Many(sa.TypeDecorator[Collection[Any]]):
    """A list as one parameter: an array for PostgreSQL, a JSON text for SQLite."""

    impl = sa.Text
    cache_ok = True

    def __init__(self, item: type[sa.BigInteger] | type[sa.Text]) -> None:
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(
            ARRAY(self.item()) if dialect.name == "postgresql" else sa.Text()
        )

    def process_bind_param(self, value: Collection[Any] | None, dialect: Dialect) -> Any:
        return list(value or ()) if dialect.name == "postgresql" else json.dumps(list(value or ()))


class _Among(FunctionElement[bool]):
    name = "among"
    type = sa.Boolean()
    inherit_cache = True

    def self_group(self, against: Any = None) -> Any:
        """As it is: SQLAlchemy would write `(...) = 1` on SQLite, which no index can serve."""
        return self


@compiles(_Among, "postgresql")
def _as_array(element: _Among, compiler: Any, **options: Any) -> str:
    column, values = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} = ANY ({values})"


@compiles(_Among)
def _as_json(element: _Among, compiler: Any, **options: Any) -> str:
    column, values = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({values}))"  # noqa: S608  made of compiled SQL only


def among(column: sa.ColumnElement[Any], values: str | Collection[Any]) -> sa.ColumnElement[bool]:
    """True when the column is one of the values; a string names the parameter that will give them."""
    many = _Many(sa.BigInteger if isinstance(column.type, sa.Integer) else sa.Text)
    if isinstance(values, str):
        return _Among(column, sa.bindparam(values, type_=many))
    return _Among(column, sa.bindparam(None, values, type_=many))
