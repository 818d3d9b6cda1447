"""The options of a ping target."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from poller.collectors import api
from poller.collectors.option_types import Seconds

#: Random bytes that distinguish every request of this process.
MIN_BYTES = 8


class PingOptions(api.Options):
    address_port: ClassVar[str] = ""  # an ICMP probe has no port

    method: Annotated[
        Literal["auto", "icmp", "tcp"],
        Field(description="Kind of probe; auto: ICMP if the worker's system allows it, else TCP"),
    ] = "auto"
    count: Annotated[int, Field(ge=1, le=100, description="Probes per poll")] = 3
    interval: Annotated[
        Seconds,
        Field(
            ge=0,
            le=60,
            description="Seconds between two probes; less if the time of the poll is too short",
        ),
    ] = 0.2
    timeout: Annotated[
        Seconds, Field(gt=0, le=60, description="Seconds after which a probe counts as lost")
    ] = 1.0
    size: Annotated[
        int,
        Field(
            ge=MIN_BYTES,
            le=9000,
            description="Bytes of data in an ICMP echo request, without headers",
        ),
    ] = 56
    port: Annotated[
        int,
        Field(
            ge=1,
            le=65535,
            description="TCP port; a connection counts as an answer, and so does a refusal",
        ),
    ] = 443
