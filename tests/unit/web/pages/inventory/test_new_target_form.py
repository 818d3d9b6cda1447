"""The form of a new target: what it sends, and the command that does the same."""

from __future__ import annotations

from poller.collectors import descriptions
from poller.collectors.http.collector import HttpCollector
from poller.web.pages.inventory import new_target_form

FORM = new_target_form.build("sw1", "http", list(descriptions.options(HttpCollector())), ["lab"])


def test_only_typed_fields_are_sent() -> None:
    """The others get the defaults of the collector."""
    sent = {"name": "", "interval": "5m", "option.path": "/health", "option.port": " "}
    fields = new_target_form.fields(FORM, sent)
    assert fields == {"collector": "http", "interval": "5m", "options": {"path": "/health"}}


def test_the_command_adds_the_same_target() -> None:
    """Values with blanks are quoted."""
    fields = {"collector": "http", "interval": "5m", "options": {"path": "/a b"}}
    assert new_target_form.command("sw1", fields) == (
        "poller target add sw1 --collector http --interval 5m -o 'path=/a b'"
    )
