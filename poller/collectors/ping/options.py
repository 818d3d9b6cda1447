"""The options of a ping target."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from poller.collectors import api, option_durations

#: Enough to tell every question of this process from every other.
LEAST_BYTES = 8


class PingOptions(api.Options):
    method: Annotated[
        Literal["auto", "icmp", "tcp"],
        Field(
            description="How to ask: auto is ICMP where the worker's system allows it, else a TCP connection"
        ),
    ] = "auto"
    count: Annotated[int, Field(ge=1, le=100, description="Questions per poll")] = 3
    interval: Annotated[
        float,
        Field(
            ge=0,
            le=60,
            description="Seconds between two questions; less when the poll's time is too short",
        ),
    ] = 0.2
    timeout: Annotated[
        float, Field(gt=0, le=60, description="Seconds after which a question counts as lost")
    ] = 1.0
    size: Annotated[
        int,
        Field(
            ge=LEAST_BYTES,
            le=9000,
            description="Bytes of data in an ICMP echo request, headers not counted",
        ),
    ] = 56
    port: Annotated[
        int,
        Field(
            ge=1,
            le=65535,
            description="TCP port; an answer counts, be it a connection or a refusal",
        ),
    ] = 443

    @field_validator("interval", "timeout", mode="before")
    @classmethod
    def _read_duration(cls, value: Any) -> Any:
        return option_durations.seconds(value)
