"""Bounds of settings, alone and against each other, and descriptions."""

from __future__ import annotations

import pytest

from poller import errors, settings
from poller.settings import policies, worker_fields
from poller.workers.results import writers


def test_every_setting_is_described() -> None:
    """The reference in the docs consists of these descriptions."""
    assert [
        name for name, field in settings.Settings.model_fields.items() if not field.description
    ] == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"MIN_S": "20"},
            "adaptive_base_s (from default): 10 is less than adaptive_min_s, which is 20",
        ),
        (
            {"MAX_S": "8"},
            "adaptive_max_s (from environment POLLER_ADAPTIVE_MAX_S): "
            "8 is less than adaptive_base_s",
        ),
        ({"ALPHA": "0"}, "adaptive_alpha"),
        ({"JITTER": "0.6"}, "adaptive_jitter"),
        ({"MIN_S": "0.5"}, "adaptive_min_s"),
    ],
)
def test_adaptive_intervals_have_bounds_and_an_order(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    """Each number has bounds; min, base and max are in order."""
    for name, value in variables.items():
        monkeypatch.setenv(f"POLLER_ADAPTIVE_{name}", value)
    with pytest.raises(errors.InvalidSetting) as caught:
        settings.load()
    assert str(caught.value).startswith(message)


def test_leadership_must_survive_one_lost_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A renewal period above half of the lock is refused."""
    monkeypatch.setenv("POLLER_LEADER_LOCK_S", "3")
    settings.load()
    monkeypatch.setenv("POLLER_LEADER_RENEW_S", "1.6")
    with pytest.raises(
        errors.InvalidSetting, match=r"leader_renew_s .* half of leader_lock_s, which is 3"
    ):
        settings.load()


@pytest.mark.parametrize("name", ["beat one", "beat\n1", "b" * 101])
def test_an_instance_id_fits_into_a_line(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("POLLER_INSTANCE_ID", "beat-1.example:a")
    assert settings.load().instance_id == "beat-1.example:a"
    monkeypatch.setenv("POLLER_INSTANCE_ID", name)
    with pytest.raises(errors.InvalidSetting, match="instance_id"):
        settings.load()


def test_the_wait_for_a_slow_database_ends_before_the_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Readings and then rows wait for several times spool_patience_s."""
    assert 2 * (1 + writers.SLOW_TIMES) == worker_fields.LONGEST_WRITE
    monkeypatch.setenv("POLLER_SPOOL_PATIENCE_S", "1.5")
    settings.load()
    monkeypatch.setenv("POLLER_SPOOL_PATIENCE_S", "1.6")
    with pytest.raises(
        errors.InvalidSetting, match=r"spool_patience_s .* tenth of lease_margin_s, which is 15"
    ):
        settings.load()
    monkeypatch.setenv("POLLER_LEASE_MARGIN_S", "16")
    settings.load()


@pytest.mark.parametrize(
    "text", ["sentry.example", "https://sentry.example/42", "https://key@sentry.example/", "x"]
)
def test_an_invalid_dsn_is_refused_without_repeating_it(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """The error names the setting and the form of a DSN."""
    monkeypatch.setenv("POLLER_SENTRY_DSN", text)
    with pytest.raises(errors.InvalidSetting, match="sentry_dsn") as caught:
        settings.load()
    assert "https://KEY@HOST/NUMBER" in str(caught.value)
    assert text == "x" or text not in str(caught.value)


def test_an_empty_dsn_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compose file may set an empty variable."""
    monkeypatch.setenv("POLLER_SENTRY_DSN", "")
    assert settings.load().sentry_dsn is None


def test_session_limits_by_collector_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong limit is an error that names the variable and suggests the right word."""
    monkeypatch.setenv("POLLER_SESSION_IDLE_S", "30")
    monkeypatch.setenv("POLLER_SESSION_EXCEPTIONS", "routeros.per_host=2, ssh.pace_s=0.5")
    rules = policies.session_rules(settings.load())
    assert (rules.for_collector("routeros").per_host, rules.for_collector("routeros").idle_s) == (
        2,
        30,
    )
    assert (rules.for_collector("ssh").pace_s, rules.for_collector("snmp").per_host) == (0.5, 4)
    monkeypatch.setenv("POLLER_SESSION_EXCEPTIONS", "routeros.perhost=2")
    with pytest.raises(errors.InvalidSetting) as caught:
        settings.load()
    assert "POLLER_SESSION_EXCEPTIONS" in str(caught.value)
    assert "did you mean per_host?" in str(caught.value)


def test_plain_rows_for_sql_need_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting is refused with the reason where nothing would be written."""
    monkeypatch.setenv("POLLER_SQL_HISTORY_METRICS", "ifHC*Octets, ifOperStatus")
    with pytest.raises(errors.InvalidSetting, match=r"sql_history_metrics .*need PostgreSQL"):
        settings.load()
    monkeypatch.setenv("POLLER_DATABASE_URL", "postgresql://192.0.2.1/poller")
    assert settings.load().sql_history_metrics == ("ifHC*Octets", "ifOperStatus")
