"""The result of a command line: its exit code, its output, and the JSON in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err.splitlines()[-1])["error"]


Cli = Callable[..., Result]


def ok(result: Result) -> Result:
    assert result.code == 0, result
    return result


def csv_lines(count: int) -> list[str]:
    head = "name,address,site,tags,collector,options,interval"
    return [
        head,
        *(
            f"sw{n:04},10.0.{n // 256}.{n % 256},s{n % 9},a b,snmp,port=1161,60s"
            for n in range(1, count + 1)
        ),
    ]
