"""`column in list` for long lists: one parameter and a constant statement text for any number of
values.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class _ListParameter(sa.TypeDecorator[Collection[Any]]):
    """A list as one parameter: an array for PostgreSQL, a JSON text for SQLite."""

    impl = sa.Text
    cache_ok = True

    def __init__(self, item: type[sa.BigInteger] | type[sa.Text]) -> None:
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(ARRAY(self.item()))
        return dialect.type_descriptor(sa.Text())

    def process_bind_param(self, value: Collection[Any] | None, dialect: Dialect) -> Any:
        items = list(value or ())
        return items if dialect.name == "postgresql" else json.dumps(items)


class _InList(FunctionElement[bool]):
    name = "in_list"
    type = sa.Boolean()
    inherit_cache = True

    def self_group(self, against: Any = None) -> Any:
        """Keep the expression bare: SQLAlchemy would write `(...) = 1` on SQLite and lose the
        index.
        """
        return self


@compiles(_InList, "postgresql")
def _as_array(element: _InList, compiler: Any, **options: Any) -> str:
    column, values = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} = ANY ({values})"


@compiles(_InList)
def _as_json(element: _InList, compiler: Any, **options: Any) -> str:
    column, values = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({values}))"  # noqa: S608  made of compiled SQL only


def in_list(column: sa.ColumnElement[Any], values: str | Collection[Any]) -> sa.ColumnElement[bool]:
    """Return the condition that the column is one of the values. A string names a bound
    parameter.
    """
    item = sa.BigInteger if isinstance(column.type, sa.Integer) else sa.Text
    parameter = _ListParameter(item)
    if isinstance(values, str):
        return _InList(column, sa.bindparam(values, type_=parameter))
    return _InList(column, sa.bindparam(None, values, type_=parameter))
