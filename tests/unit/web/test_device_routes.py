"""The rates of a device as JSON, for programs of before `/api/v1`."""

from __future__ import annotations

import pytest
import web_clients
import web_rates

from poller import errors
from poller.db.record.stored_readings import Stored


def client(stored: list[Stored]) -> web_clients.TestClient:
    return web_clients.create(rates=web_rates.query(stored, ()))


def test_the_api_returns_raw_rates() -> None:
    """Rates are in octets per second; with a span the response has all rates of the span."""
    browser = client(web_rates.polls(10, 1))
    found = browser.get("/api/devices/sw1/rates?metric=HCIn&since=5m30s").json()
    assert (found["schema"], found["device"], found["total"]) == ("poller.rates/1", "sw1", 1)
    [item] = found["items"]
    assert (item["metric"], item["verdict"], len(item["rates"])) == ("ifHCInOctets", "ok", 6)
    assert item["per_second"] == item["rates"][-1]["per_second"] > 0
    assert item["rates"][0]["at"].endswith("Z")
    newest = browser.get("/api/devices/sw1/rates?limit=1").json()
    assert (len(newest["items"]), newest["total"], "rates" in newest["items"][0]) == (1, 4, False)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/api/devices/sw9/rates", 404, 'no device named "sw9"'),
        ("/api/devices/sw1/rates?since=soon", 422, '"soon" is not a duration'),
    ],
)
def test_the_api_returns_errors_as_json(path: str, status: int, words: str) -> None:
    """The message is in the field that all errors of the API have."""
    response = client(web_rates.polls(2)).get(path)
    assert response.status_code == status
    assert words in response.json()["error"]["message"]


def test_an_error_of_the_database_is_shown() -> None:
    """The API responds with 503 and the error."""

    def unavailable(device: str, request: object) -> list[web_rates.TargetRates]:
        raise errors.StoreUnavailable("cannot use the database", "OperationalError")

    failing = web_clients.create(rates=unavailable)
    response = failing.get("/api/devices/sw1/rates")
    assert response.status_code == 503
    assert "cannot use the database" in response.text
