"""A row of the audit log reads as a sentence, whatever its action is."""

from __future__ import annotations

import pytest

from poller.presentation.record import audit_sentences
from poller.presentation.record.audit_sentences import Act, FieldChange


@pytest.mark.parametrize(
    ("action", "subject", "count", "text"),
    [
        ("device.edit", "sw1", 1, "kim changed device sw1"),
        ("target.poll", "site:fra", 1_200, "kim polled 1,200 targets: site:fra"),
        ("device.remove", "3 devices", 3, "kim removed 3 devices"),
        (
            "dead_letter.drop",
            "reason:auth_failed",
            7,
            "kim dropped 7 dead letters: reason:auth_failed",
        ),
        ("breaker.reset", "sw1/snmp", 1, "kim reset breaker sw1/snmp"),
        ("credential.rotate-key", "all credentials", 9, "kim rotated the key of all credentials"),
        ("notification.retry", "ops", 1, "kim retried notification ops"),
        ("session.login", "kim", 1, "kim logged in"),
        ("session.logout", "kim", 1, "kim logged out"),
        ("session.revoke", "0123456789ab", 1, "kim ended session 0123456789ab"),
        ("login.refused", "lee", 10, "a log-in as lee was refused"),
        ("password.refused", "kim", 1, "kim typed a wrong old password"),
        ("user.password", "kim", 1, "kim changed the own password"),
        ("device.parents", "neighbours", 2, "kim set the parents of 2 devices by neighbours"),
        ("thing.deploy", "x", 1, "kim deployed thing x"),
        ("odd", "x", 1, "kim did odd x"),
    ],
)
def test_an_action_is_a_sentence(action: str, subject: str, count: int, text: str) -> None:
    """Also an action that nobody foresaw."""
    act = Act("kim", action, subject, count, {})
    assert audit_sentences.sentence(act).text == text


def test_an_opened_credential_says_what_for() -> None:
    """The purpose is the one field of the row."""
    act = Act("kim", "credential.open", "core", 1, {"for": "discover 192.0.2.1"})
    assert audit_sentences.sentence(act).text == "kim opened credential core for discover 192.0.2.1"


def test_fields_have_what_they_were_and_are() -> None:
    """A field that one document has alone has one value; bulk changes count old values."""
    before = {"role": "viewer", "enabled": {"true": 12, "false": 3}, "tags": []}
    after = {"role": "admin", "enabled": False, "names": ["a", "b"], "expires_ms": 1_000}
    found = audit_sentences.changes(before, after)
    assert found == [
        FieldChange("role", "viewer", "admin"),
        FieldChange("enabled", "true (12), false (3)", "no"),
        FieldChange("tags", "none", ""),
        FieldChange("names", "", "a, b"),
        FieldChange("expires", "", "1970-01-01T00:00:01Z"),
    ]
    assert [change.text("->") for change in found[:3]] == [
        "role: viewer -> admin",
        "enabled: true (12), false (3) -> no",
        "tags: none",
    ]


def test_a_value_is_text_for_people() -> None:
    """Nested options, zero and nothing."""
    found = audit_sentences.changes({}, {"options": {"tls": True, "port": "8729"}, "n": 0, "x": ""})
    assert [change.after for change in found] == ["tls=yes, port=8729", "0", "none"]
