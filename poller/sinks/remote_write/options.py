"""The options of a `remote_write` sink, `[sink.NAME]` in poller.toml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from poller import errors
from poller.domain.inventory import duration
from poller.sinks.http_options import HttpStoreOptions
from poller.sinks.outside_series import SeriesOptions

MOST_SAMPLES = 2000


def _age_ms(value: Any) -> int | None:
    if value is None:
        return None
    try:
        return duration.parse_ms(value)
    except errors.InvalidInput as error:
        raise ValueError(f"{error}; {error.hint}") from None


class RemoteWriteOptions(HttpStoreOptions, SeriesOptions):
    """Where and how to write. `url` is the whole address, such as .../api/v1/write."""

    protocol: Literal["1.0", "2.0"] = Field(
        "1.0", description="Version of remote write; a store without 2.0 gets 1.0."
    )
    max_samples: int = Field(
        MOST_SAMPLES, ge=1, le=MOST_SAMPLES, description="Most samples of one request."
    )
    max_age: Annotated[int | None, BeforeValidator(_age_ms)] = Field(
        None,
        gt=0,
        description="Older samples are dropped, for a store that refuses them: 1h.",
    )
    correct_counters: bool = Field(
        True, description="Add samples at wraps and resets of counters, so that rate() is right."
    )
    cache_mb: int = Field(
        64, ge=1, le=65536, description="Memory of a worker for encoded names of series."
    )
