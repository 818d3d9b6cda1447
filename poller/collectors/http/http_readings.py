"""Turns the record of an HTTP exchange into readings. Performs no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from poller.collectors import api
from poller.collectors.http import json_paths
from poller.collectors.http.exchange_record import Exchange

HELP = {
    "http_up": "Did the server answer as required (status, body, certificate)? 1 yes, 0 no",
    "http_status": "Status code of the response",
    "http_duration_seconds": (
        "Time from resolving the name to the last byte, redirections included"
    ),
    "http_phase_seconds": (
        "Time of a step of the last request: resolve, connect, tls, first_byte, transfer"
    ),
    "http_redirects": "Redirections followed",
    "http_body_bytes": "Length of the body, as far as it was read",
    "http_body_truncated": "Was the body longer than max_body? 1 yes, 0 no",
    "http_body_matched": "Was the expression found in the body? 1 yes, 0 no",
    "http_tls_expiry_seconds": "Time until the certificate expires; negative after its expiry",
    "http_tls_trusted": "Was the certificate checked and good? 1 yes, 0 no",
    "http_tls_info": "TLS version, subject and issuer of the certificate",
}


def readings(
    exchange: Exchange, *, up: bool, duration_s: float, redirections: int, matched: bool | None
) -> list[api.Reading]:
    """Return a reading for each fact of the exchange; no status without a response."""
    made = [
        api.Reading("http_up", up),
        api.Reading("http_duration_seconds", duration_s),
    ]
    for phase, seconds in exchange.phases.items():
        made.append(api.Reading("http_phase_seconds", seconds, {"phase": phase}))
    made.append(api.Reading("http_redirects", redirections))
    if exchange.status:
        made.append(api.Reading("http_status", exchange.status))
        made.append(api.Reading("http_body_bytes", len(exchange.body)))
        made.append(api.Reading("http_body_truncated", exchange.truncated))
    if matched is not None:
        made.append(api.Reading("http_body_matched", matched))
    made += _certificate_readings(exchange)
    return made


def _certificate_readings(exchange: Exchange) -> Iterator[api.Reading]:
    if exchange.protocol:
        yield api.Reading("http_tls_trusted", exchange.trusted)
    certificate = exchange.certificate
    if certificate is not None:
        yield api.Reading("http_tls_expiry_seconds", certificate.seconds_left())
        labels = {
            "protocol": exchange.protocol,
            "subject": certificate.subject,
            "issuer": certificate.issuer,
        }
        yield api.Reading("http_tls_info", 1, labels, api.Kind.INFO)


def body_values(exchange: Exchange, paths: Mapping[str, str]) -> Iterator[api.Yielded]:
    """Yield the numbers of a JSON body by metric, and a failure for each missing one."""
    if not paths:
        return
    try:
        document = _document(exchange)
    except api.DeviceError as error:
        yield api.PartFailed("values", error)
        return
    for metric, path in paths.items():
        try:
            yield api.Reading(metric, json_paths.number(document, path))
        except json_paths.NotThere as missing:
            yield api.PartFailed("values", api.DeviceUnsupported(f"{metric}: {missing}"))


def _document(exchange: Exchange) -> Any:
    if exchange.truncated:
        raise api.DeviceProtocolError(
            "the body is longer than max_body, so it is no whole JSON document"
        )
    if exchange.encoding not in ("", "identity"):
        raise api.DeviceProtocolError("the body is compressed, though we asked for a plain one")
    try:
        return json.loads(exchange.body)
    except (ValueError, RecursionError) as error:
        raise api.DeviceProtocolError("the body is no JSON", cause=type(error).__name__) from None
