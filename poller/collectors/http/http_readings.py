"""What an exchange says, as readings. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from poller.collectors import api
from poller.collectors.http import http_tls, json_paths
from poller.collectors.http.exchange_record import Seen

HELP = {
    "http_up": "Did it answer as it should (status, body, certificate)? 1 yes, 0 no",
    "http_status": "Status code of the answer",
    "http_duration_seconds": "How long it took, from resolving the name to the last byte, redirections included",
    "http_phase_seconds": "How long a step of the last request took: resolve, connect, tls, first_byte, transfer",
    "http_redirects": "Redirections that were followed",
    "http_body_bytes": "Length of the body, as far as it was read",
    "http_body_truncated": "Was the body longer than max_body? 1 yes, 0 no",
    "http_body_matched": "Was the expression found in the body? 1 yes, 0 no",
    "http_tls_expiry_seconds": "Time until the certificate expires; negative: since it has",
    "http_tls_trusted": "Was the certificate checked and good? 1 yes, 0 no",
    "http_tls_info": "Protocol, and who the certificate is of and from",
}


def of(
    seen: Seen, up: bool, took_s: float, redirects: int, matched: bool | None
) -> Iterator[api.Reading]:
    """Only what is known: a server that did not answer has no status."""
    yield api.Reading("http_up", up)
    yield api.Reading("http_duration_seconds", took_s)
    for phase, seconds in seen.phases.items():
        yield api.Reading("http_phase_seconds", seconds, {"phase": phase})
    yield api.Reading("http_redirects", redirects)
    if seen.status:
        yield api.Reading("http_status", seen.status)
        yield api.Reading("http_body_bytes", len(seen.body))
        yield api.Reading("http_body_truncated", seen.truncated)
    if matched is not None:
        yield api.Reading("http_body_matched", matched)
    yield from _certificate(seen)


def _certificate(seen: Seen) -> Iterator[api.Reading]:
    if seen.protocol:
        yield api.Reading("http_tls_trusted", seen.trusted)
    if seen.certificate is not None:
        found = seen.certificate
        yield api.Reading("http_tls_expiry_seconds", found.seconds_left(http_tls.now()))
        labels = {"protocol": seen.protocol, "subject": found.subject, "issuer": found.issuer}
        yield api.Reading("http_tls_info", 1, labels, api.Kind.INFO)


def values(seen: Seen, wanted: Mapping[str, str]) -> Iterator[api.Yielded]:
    """The numbers of a JSON body; what is missing fails by itself."""
    if not wanted:
        return
    try:
        document = _document(seen)
    except api.DeviceError as error:
        yield api.PartFailed("values", error)
        return
    for metric, path in wanted.items():
        try:
            yield api.Reading(metric, json_paths.number(document, path))
        except json_paths.NotThere as missing:
            yield api.PartFailed("values", api.DeviceUnsupported(f"{metric}: {missing}"))


def _document(seen: Seen) -> Any:
    if seen.truncated:
        raise api.DeviceProtocolError(
            "the body is longer than max_body, so it is no whole JSON document"
        )
    if seen.encoding not in ("", "identity"):
        raise api.DeviceProtocolError("the body is compressed, though we asked for a plain one")
    try:
        return json.loads(seen.body)
    except (ValueError, RecursionError) as error:
        raise api.DeviceProtocolError("the body is no JSON", cause=type(error).__name__) from None
