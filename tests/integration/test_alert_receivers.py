"""The built-in receivers against real servers, also such that fail, hang and refuse."""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from poller import errors
from tests.integration import alert_receivers
from tests.integration.alert_receivers import (
    KEY,
    Alertmanager,
    Mood,
    firing,
    mail_server,
    receiver,
    resolved,
    secret_file,
    web,
)
from tests.integration.store_servers import free_port
from tests.integration.web_servers import identity

NOC = "noc@example.net"
MAIL = {"sender": "poller@example.net", "to": [NOC], "host": "127.0.0.1", "security": "plain"}


def test_a_webhook_gets_a_signed_notice(tmp_path: Path) -> None:
    """The signature covers the time and the body; the key is in a header and in the body."""
    with web() as (url, mood):
        path = secret_file(tmp_path, "s3cret-of-hook\n")
        made = receiver("webhook", url=url, secret_file=path)
        assert made.receiver.send(firing(), KEY) == "200 noted"
    [head], [body] = mood.heads, mood.bodies
    signed = f"{head['x-poller-timestamp']}.".encode() + mood.raw[0]
    expected = hmac.new(b"s3cret-of-hook", signed, hashlib.sha256).hexdigest()
    assert head["x-poller-signature"] == f"sha256={expected}"
    assert head["x-poller-key"] == head["idempotency-key"] == body["key"] == KEY
    assert body["kind"] == "firing"
    assert body["alerts"][0]["device"] == "sw-1"
    assert body["alerts"][0]["url"] == "https://poller.example/alerts/1"


def test_a_repeated_webhook_has_the_same_body() -> None:
    """Every attempt sends the same bytes under the same key."""
    with web() as (url, mood):
        made = receiver("webhook", url=url)
        made.receiver.send(firing(), KEY)
        made.receiver.send(firing(), KEY)
    assert mood.raw[0] == mood.raw[1]
    assert len(mood.taken) == 1


@pytest.mark.parametrize(
    ("status", "is_final"),
    [
        (500, False),
        (503, False),
        (429, False),
        (401, False),
        (404, False),
        (400, True),
        (422, True),
    ],
)
def test_a_webhook_that_fails_is_tried_again_unless_it_refuses(status: int, is_final: bool) -> None:
    """Answers about the notice itself are final, all others may pass."""
    with web(Mood(status=status)) as (url, _):
        made = receiver("webhook", url=url)
        with pytest.raises(errors.StoreError) as raised:
            made.receiver.send(firing(), KEY)
    assert isinstance(raised.value, errors.StoreUnavailable) is not is_final
    assert str(status) in raised.value.message


def test_a_webhook_that_hangs_or_is_away_ends_in_time() -> None:
    """A deadline ends a request; a closed port is the same kind of failure."""
    with web(Mood(hangs=True)) as (url, _):
        made = receiver("webhook", url=url, timeout_s=0.3)
        with pytest.raises(errors.StoreUnavailable, match=r"within 0\.3 s"):
            made.receiver.send(firing(), KEY)
    made = receiver("webhook", url=f"http://127.0.0.1:{free_port()}/")
    with pytest.raises(errors.StoreUnavailable):
        made.receiver.send(firing(), KEY)


def test_a_secret_url_is_never_shown(tmp_path: Path) -> None:
    """A URL from a file is used, and no error and no answer repeats its path."""
    with web(Mood(status=500)) as (url, mood):
        path = secret_file(tmp_path, f"{url}/s3cret-path?key=s3cret-query")
        made = receiver("webhook", url_file=path)
        with pytest.raises(errors.StoreUnavailable) as raised:
            made.receiver.send(firing(), KEY)
        assert len(mood.bodies) == 1
    error = raised.value
    assert "s3cret" not in f"{error.message} {error.cause} {error.hint}"
    assert 'receiver "' not in error.message
    assert "sink" not in f"{error.message} {error.hint}"


def test_an_answer_that_repeats_a_secret_url_is_masked(tmp_path: Path) -> None:
    """What a receiver answers is shown in the ledger."""
    with web(Mood(answer="took /hook/s3cret-path")) as (url, _):
        made = receiver("webhook", url_file=secret_file(tmp_path, f"{url}/s3cret-path"))
        assert made.receiver.send(firing(), KEY) == "200 took (a URL from a file)"


def test_alertmanager_gets_the_same_labels_until_the_end(tmp_path: Path) -> None:
    """A device that is renamed, or a rule that becomes critical, makes no second alert of it."""
    with web() as (url, mood):
        made = receiver("alertmanager", url=url)
        notice = firing(1)
        made.receiver.send(notice, KEY)
        [alert] = notice.alerts
        renamed = replace(alert, device="sw-one", severity="info")
        made.receiver.resend([renamed])  # type: ignore[attr-defined]
        over = replace(renamed, state="resolved", resolved_ms=alert_receivers.NOW)
        made.receiver.send(replace(notice, alerts=(over,)), KEY)
    first, again, end = [body[0] for body in mood.bodies]
    assert first["labels"]["device"] == "sw-1"
    assert again["labels"] == end["labels"] == first["labels"]
    assert again["annotations"]["summary"].startswith("sw-one")


def test_alertmanager_is_never_told_an_end_to_come() -> None:
    """The clock of Redis may be ahead: Alertmanager would keep the alert for minutes."""
    with web() as (url, mood):
        made = receiver("alertmanager", url=url)
        ahead = alert_receivers.NOW + 60_000
        [over] = resolved(1).alerts
        early = replace(over, since_ms=over.fired_ms - 60_000, fired_ms=over.fired_ms - 60_000)
        notice = replace(resolved(1), alerts=(replace(early, resolved_ms=ahead),))
        made.receiver.send(notice, KEY)
    [[sent]] = mood.bodies
    assert _instant(sent["startsAt"]) < _instant(sent["endsAt"]) < time.time() - 4


def test_alertmanager_shows_what_fires_and_forgets_what_is_over(tmp_path: Path) -> None:
    """A real Alertmanager has the alert with its labels, its end in some minutes, and then not."""
    server = Alertmanager(tmp_path / "am")
    server.start()
    try:
        made = receiver("alertmanager", url=server.url)
        assert made.receiver.send(firing(1, 2), KEY) == "taken by 1 of 1"
        shown = server.alerts()
        assert set(shown) == {"sw-1", "sw-2"}
        assert shown["sw-1"]["labels"] == {
            "alertname": "device-unreachable",
            "severity": "critical",
            "device": "sw-1",
            "site": "fra",
        }
        assert shown["sw-1"]["generatorURL"] == "https://poller.example/alerts/1"
        kept_s = _instant(shown["sw-1"]["endsAt"]) - alert_receivers.NOW / 1000
        assert 240 < kept_s < 400
        made.receiver.send(resolved(1), KEY)
        alert_receivers.eventually(lambda: set(server.alerts()) == {"sw-2"})
    finally:
        server.kill()


def test_alertmanager_keeps_an_alert_that_is_sent_again(tmp_path: Path) -> None:
    """Every resend moves the end, under the same identity."""
    server = Alertmanager(tmp_path / "am")
    server.start()
    try:
        made = receiver("alertmanager", url=server.url, resend_s=1)
        notice = firing(1)
        made.receiver.send(notice, KEY)
        before = server.alerts()["sw-1"]
        alert_receivers.eventually(
            lambda: (
                made.receiver.resend(notice.alerts)  # type: ignore[attr-defined]
                and server.alerts()["sw-1"]["endsAt"] > before["endsAt"]
            )
        )
        after = server.alerts()
        assert list(after) == ["sw-1"]
        assert after["sw-1"]["fingerprint"] == before["fingerprint"]
    finally:
        server.kill()


def test_one_instance_of_a_cluster_is_enough(tmp_path: Path) -> None:
    """A dead instance is named, delays nothing twice, and gets everything when it is back."""
    one, other = Alertmanager(tmp_path / "one"), Alertmanager(tmp_path / "other")
    other.start()
    try:
        made = receiver("alertmanager", url=one.url, peers=[other.url])
        assert made.receiver.send(firing(1), KEY).startswith("taken by 1 of 2; 1 failed")
        assert made.receiver.send(firing(2), KEY) == "taken by 1 of 2"
        one.start()
        told = firing(1, 2).alerts
        assert made.receiver.resend(told) == "taken by 2 of 2"  # type: ignore[attr-defined]
        assert set(one.alerts()) == set(other.alerts()) == {"sw-1", "sw-2"}
        one.kill()
        other.kill()
        with pytest.raises(errors.StoreUnavailable):
            made.receiver.send(firing(3), KEY)
    finally:
        one.kill()
        other.kill()


def test_mails_of_one_alert_are_one_thread() -> None:
    """The end refers to the beginning by its Message-ID, which every attempt shares."""
    with mail_server() as (port, box):
        made = receiver("email", port=port, **MAIL)
        made.receiver.send(firing(), f"{KEY}:ops")
        made.receiver.send(firing(), f"{KEY}:ops")
        end = replace(resolved(), key="b" * 40, replies_to=(KEY,))
        assert "kept" in made.receiver.send(end, f"{end.key}:ops")
    first, repeated, last = box.messages
    assert first["Message-ID"] == repeated["Message-ID"] == f"<{KEY}.ops@example.net>"
    assert last["In-Reply-To"] == last["References"] == first["Message-ID"]
    assert first["Subject"] == "[critical] sw-1: no target responds"
    assert last["Subject"] == "[resolved] sw-1: no target responds"
    assert first["To"] == NOC
    assert first["X-Poller-Key"] == f"{KEY}:ops"
    assert "https://poller.example/alerts/1" in first.get_content()


def test_a_name_of_a_device_cannot_add_headers() -> None:
    """A text with a line break stays one header."""
    with mail_server() as (port, box):
        made = receiver("email", port=port, **MAIL)
        made.receiver.send(firing(1, text="down\r\nBcc: eve@example.net"), KEY)
    [message] = box.messages
    assert message["Bcc"] is None
    assert "Bcc: eve" in message["Subject"]


def test_mail_goes_through_starttls_with_a_login(tmp_path: Path) -> None:
    """The password comes from a file, and a wrong one is not shown."""
    secured = identity(tmp_path)
    path = secret_file(tmp_path, "s3cret-of-mail")
    login = {"security": "starttls", "username": "poller", "password_file": path}
    with mail_server(tls_context=secured.context, require_starttls=True) as (port, box):
        made = receiver("email", port=port, ca_file=str(secured.ca_file), **{**MAIL, **login})
        made.receiver.send(firing(), KEY)
        assert len(box.messages) == 1
        Path(path).write_text("s3cret-and-wrong")
        with pytest.raises(errors.StoreUnavailable) as raised:
            made.receiver.send(firing(), KEY)
    assert "s3cret" not in str(raised.value)
    assert raised.value.hint == "check username and password_file"


def test_mail_goes_through_tls_from_the_first_byte(tmp_path: Path) -> None:
    """The certificate of the server is checked."""
    secured = identity(tmp_path)
    options = {**MAIL, "security": "tls"}
    with mail_server(ssl_context=secured.context) as (port, box):
        made = receiver("email", port=port, ca_file=str(secured.ca_file), **options)
        made.receiver.send(firing(), KEY)
        assert len(box.messages) == 1
        stranger = receiver("email", port=port, **options)
        with pytest.raises(errors.StoreUnavailable) as raised:
            stranger.receiver.send(firing(), KEY)
    assert "certificate" in raised.value.cause.lower()


@pytest.mark.parametrize(("answer", "is_final"), [("451 later", False), ("550 no such list", True)])
def test_a_mail_server_that_refuses_is_believed(answer: str, is_final: bool) -> None:
    """A code from 500 on is final, one below is tried again."""
    with mail_server() as (port, box):
        made = receiver("email", port=port, **MAIL)
        box.answer = answer
        with pytest.raises(errors.StoreError) as raised:
            made.receiver.send(firing(), KEY)
        assert isinstance(raised.value, errors.StoreUnavailable) is not is_final
        assert answer in raised.value.cause
        box.answer = "250 kept"
        box.refusals = {NOC: answer}
        with pytest.raises(errors.StoreError) as raised:
            made.receiver.send(firing(), KEY)
        assert isinstance(raised.value, errors.StoreUnavailable) is not is_final


def test_a_mail_is_sent_if_one_address_takes_it() -> None:
    """The answer says how many addresses were refused."""
    with mail_server() as (port, box):
        made = receiver("email", port=port, **{**MAIL, "to": [NOC, "gone@example.net"]})
        box.refusals = {"gone@example.net": "550 gone"}
        assert made.receiver.send(firing(), KEY).endswith("1 of 2 addresses refused")


def test_apprise_tells_each_service_once(tmp_path: Path) -> None:
    """A repeat leaves out the services that took the notice, and no error shows a URL."""
    pytest.importorskip("apprise")
    with web() as (one_url, one), web(Mood(status=500)) as (other_url, other):
        lines = ["# a comment", f"{_json_url(one_url)}/s3cret", f"{_json_url(other_url)}/s3cret"]
        path = secret_file(tmp_path, "\n".join(lines))
        made = receiver("apprise", urls_file=path)
        with pytest.raises(errors.StoreUnavailable) as raised:
            made.receiver.send(firing(), KEY)
        assert raised.value.cause == "json did not take it"
        assert "s3cret" not in str(raised.value)
        other.status = 200
        assert made.receiver.send(firing(), KEY) == "taken by 2: json, json"
    assert [body["title"] for body in one.bodies] == ["[critical] sw-1: no target responds"]
    assert len(other.bodies) == 2


def test_apprise_that_hangs_is_left_behind(tmp_path: Path) -> None:
    """A notice ends in time; the next one is not sent while the thread hangs."""
    pytest.importorskip("apprise")
    with web(Mood(hangs=True)) as (url, mood):
        path = secret_file(tmp_path, _json_url(url))
        made = receiver("apprise", urls_file=path, timeout_s=0.3)
        with pytest.raises(errors.StoreUnavailable, match=r"0 of 1 answered in 0\.3 s"):
            made.receiver.send(firing(), KEY)
        with pytest.raises(errors.StoreUnavailable, match="still hangs"):
            made.receiver.send(firing(), KEY)
        mood.hangs = False
        mood.free.set()
        alert_receivers.eventually(lambda: mood.bodies)


def test_apprise_refuses_a_file_without_a_url(tmp_path: Path) -> None:
    """The error names the line, never its text."""
    pytest.importorskip("apprise")
    for text, named in (("", "has no URL"), ("s3cret://nothing", "line 1")):
        with pytest.raises(errors.InvalidSetting, match=named) as raised:
            receiver("apprise", urls_file=secret_file(tmp_path, text))
        assert "s3cret" not in str(raised.value)


def _json_url(url: str) -> str:
    """Apprise's URL for a web server that takes JSON."""
    return url.replace("http://", "json://")


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_a_labelled_alert_has_annotations() -> None:
    """Labels of the alert may change, so they are annotations, not a part of its identity."""
    with web() as (url, mood):
        made = receiver("alertmanager", url=url.removesuffix("/hook"))
        made.receiver.send(firing(1, labels={"ifAlias": "uplink"}, value=93.5), KEY)
    [entry] = mood.bodies[0]  # type: ignore[misc]
    assert entry["annotations"]["label_ifAlias"] == "uplink"
    assert entry["annotations"]["value"] == "93.5"
    assert "ifAlias" not in entry["labels"]


def test_the_context_of_a_secured_receiver_is_checked_at_start(tmp_path: Path) -> None:
    """A file that is missing is found before the first notice."""
    missing = str(tmp_path / "missing.pem")
    for kind, options in (
        ("webhook", {"url": "https://127.0.0.1:1/", "ca_file": missing}),
        ("email", {**MAIL, "security": "tls", "ca_file": missing}),
        ("webhook", {"url": "http://127.0.0.1:1/", "secret_file": missing}),
    ):
        with pytest.raises(errors.InvalidSetting) as raised:
            receiver(kind, **options)
        assert raised.value.message.startswith('[receiver.ops] receiver "ops"')
        assert "scheduler" in raised.value.hint
