"""Settings: sources in order, unknown names refused, secrets masked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from poller import errors, settings
from poller.cli.commands import up
from poller.domain.failures import circuit_breaker, error_codes
from poller.domain.scheduling.interval import Adaptive
from poller.settings import masking, policies, setting_sources, setting_table, worker_fields
from poller.workers.results import writers


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("POLLER_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_environment_beats_file_beats_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And each value knows where it came from."""
    (tmp_path / "poller.toml").write_text(
        'batch_size = 32\ntick_s = 1.0\nsinks = ["sql", "stream"]\n'
    )
    monkeypatch.setenv("POLLER_BATCH_SIZE", "16")
    loaded = settings.load()
    assert (loaded.batch_size, loaded.tick_s, loaded.max_queue, loaded.sinks) == (
        16,
        1.0,
        settings.Settings.model_fields["max_queue"].default,
        ("sql", "stream"),
    )
    where = settings.origins(os.environ)
    assert where["batch_size"] == "environment POLLER_BATCH_SIZE"
    assert where["tick_s"] == "poller.toml"
    assert where["max_queue"] == "default"


def test_an_unknown_variable_is_refused_with_the_nearest_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A typo never passes silently."""
    monkeypatch.setenv("POLLER_BATCHSIZE", "16")
    with pytest.raises(errors.InvalidSetting, match="POLLER_BATCHSIZE") as caught:
        settings.load()
    assert "POLLER_BATCH_SIZE" in caught.value.hint


def test_an_unknown_key_of_the_file_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    """The file is named too."""
    (tmp_path / "poller.toml").write_text("batchsize = 3\n")
    with pytest.raises(
        errors.InvalidSetting, match=r'poller.toml: unknown key "batchsize"'
    ) as caught:
        settings.load()
    assert "batch_size" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "value"),
    [("POLLER_BATCH_SIZE", "abc"), ("POLLER_BATCH_SIZE", "0"), ("POLLER_LOG_LEVEL", "LOUD")],
)
def test_a_bad_value_is_an_error_that_names_the_field(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """Never a silent default."""
    monkeypatch.setenv(name, value)
    with pytest.raises(errors.InvalidSetting, match=name):
        settings.load()


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        (
            "batch_size",
            "batch_size takes a whole number from 1 to 1000, such as 64. Targets per batch",
        ),
        ("web_port", "web_port takes a whole number from 0 to 65535. Port of the page."),
        ("site_share", "site_share takes a number above 0 to 1, such as 0.6. A site"),
        ("runs_days", "runs_days takes a number above 0 to 3650, such as 30.0. How long"),
        ("leader_election", "leader_election takes true or false. False:"),
        ("log_level", "log_level takes DEBUG or INFO or WARNING or ERROR. Lowest"),
        ("sentry_dsn", "sentry_dsn: Sentry project"),
    ],
)
def test_the_advice_says_what_a_setting_takes(
    monkeypatch: pytest.MonkeyPatch, name: str, advice: str
) -> None:
    """Not only what it is for."""
    monkeypatch.setenv(f"POLLER_{name.upper()}", "many")
    with pytest.raises(errors.InvalidSetting) as caught:
        settings.load()
    assert caught.value.hint.startswith(advice)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"MIN_S": "20"},
            "adaptive_base_s (from default): 10 is less than adaptive_min_s, which is 20",
        ),
        (
            {"MAX_S": "8"},
            "adaptive_max_s (from environment POLLER_ADAPTIVE_MAX_S): 8 is less than adaptive_base_s",
        ),
        ({"ALPHA": "0"}, "adaptive_alpha"),
        ({"JITTER": "0.6"}, "adaptive_jitter"),
        ({"MIN_S": "0.5"}, "adaptive_min_s"),
    ],
)
def test_adaptive_numbers_must_make_sense(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], message: str
) -> None:
    """Alone, and one beside the other."""
    for name, value in given.items():
        monkeypatch.setenv(f"POLLER_ADAPTIVE_{name}", value)
    with pytest.raises(errors.InvalidSetting) as caught:
        settings.load()
    assert str(caught.value).startswith(message)


def test_leadership_must_survive_one_lost_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renewed too seldom, it would change hands without a fault."""
    monkeypatch.setenv("POLLER_LEADER_LOCK_S", "3")
    settings.load()
    monkeypatch.setenv("POLLER_LEADER_RENEW_S", "1.6")
    with pytest.raises(
        errors.InvalidSetting, match=r"leader_renew_s .* half of leader_lock_s, which is 3"
    ):
        settings.load()


def test_waiting_for_a_slow_database_must_not_cost_the_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Readings and then rows wait for some times their patience."""
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


def test_adaptive_numbers_reach_the_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each setting is the number it says."""
    for name, value in {
        "MIN_S": 2,
        "BASE_S": 4.5,
        "MAX_S": 90,
        "ALPHA": 0.5,
        "JITTER": 0,
        "STRETCH": 1,
    }.items():
        monkeypatch.setenv(f"POLLER_ADAPTIVE_{name}", str(value))
    monkeypatch.setenv("POLLER_ADAPTIVE_PENALTY", "2")
    assert policies.adaptive_interval(settings.load()) == Adaptive(
        2_000, 4_500, 90_000, alpha=0.5, jitter=0, stretch=1, penalty=2
    )


def test_a_broken_or_missing_file_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The default file may be absent; one that is named may not."""
    monkeypatch.setenv("POLLER_CONFIG", str(tmp_path / "no.toml"))
    with pytest.raises(errors.InvalidSetting, match=r"no\.toml"):
        settings.load()
    (tmp_path / "no.toml").write_text("= what")
    with pytest.raises(errors.InvalidSetting, match=r"no\.toml"):
        settings.load()


def test_a_secret_can_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As container platforms hand them out."""
    (tmp_path / "url").write_text("redis://:s3cret@cache:6379/0\n")
    monkeypatch.setenv("POLLER_REDIS_URL_FILE", str(tmp_path / "url"))
    loaded = settings.load()
    assert loaded.broker_url == "redis://:s3cret@cache:6379/0"
    assert "s3cret" not in repr(loaded)


def test_secrets_are_masked_when_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts stay readable."""
    monkeypatch.setenv("POLLER_REDIS_URL", "redis://user:s3cret@cache:6379/0")
    monkeypatch.setenv("POLLER_SECRET_KEY", "s3cret-key")
    shown = {row.name: row.value for row in setting_table.rows(settings.load(), os.environ)}
    assert shown["redis_url"] == "redis://user:********@cache:6379/0"
    assert shown["secret_key"] == "********"
    assert "s3cret" not in str(shown)


def test_a_living_poller_up_is_found_and_a_dead_one_is_not(tmp_path: Path) -> None:
    """A second terminal needs no variables while `poller up` runs."""
    home = tmp_path / ".poller"
    home.mkdir()
    run = {"pid": os.getpid(), "settings": {"redis_url": "redis://127.0.0.1:1234/0"}}
    (home / setting_sources.RUN_FILE).write_text(json.dumps(run))
    assert settings.load().broker_url == "redis://127.0.0.1:1234/0"
    (home / setting_sources.RUN_FILE).write_text(json.dumps({**run, "pid": 2**22 + 1}))
    assert settings.load().broker_url == "redis://127.0.0.1:6379/0"


def test_a_home_above_is_found_from_below(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As git finds its repository: the nearest one, with the `poller up` that runs on it."""
    (tmp_path / ".poller").mkdir()
    run = {"pid": os.getpid(), "settings": {"redis_url": "redis://127.0.0.1:1234/0"}}
    (tmp_path / ".poller" / setting_sources.RUN_FILE).write_text(json.dumps(run))
    _go_below(monkeypatch, tmp_path)
    loaded = settings.load()
    assert (loaded.home, loaded.broker_url) == (tmp_path / ".poller", "redis://127.0.0.1:1234/0")
    assert settings.origins(os.environ)["home"] == f"found in {tmp_path}"
    (tmp_path / "a" / ".poller").mkdir()
    assert settings.load().home == tmp_path / "a" / ".poller"
    Path(".poller").mkdir()
    assert settings.load().home == tmp_path / "a" / "b" / ".poller"
    assert settings.origins(os.environ)["home"] == "default"


def test_without_a_home_above_it_is_made_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file of that name is none."""
    (tmp_path / ".poller").touch()
    here = _go_below(monkeypatch, tmp_path)
    assert settings.load().home == here / ".poller"


def test_who_names_a_home_gets_that_and_nothing_from_above(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the environment or by a file; a file is not looked for then, either."""
    (tmp_path / ".poller").mkdir()
    (tmp_path / "poller.toml").write_text("batch_size = 7\n")
    here = _go_below(monkeypatch, tmp_path)
    with monkeypatch.context() as given:
        given.setenv("POLLER_HOME", "mine")
        assert (settings.load().home, settings.load().batch_size) == (here / "mine", 64)
    (here / "poller.toml").write_text('home = "other"\n')
    assert settings.load().home == here / "other"


def test_a_file_above_is_read_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It belongs to its home: both are found or neither, and its paths are meant from there."""
    text = 'home = "data"\ndatabase_url = "sqlite:///some.db"\nbatch_size = 7\n'
    (tmp_path / "poller.toml").write_text(text)
    _go_below(monkeypatch, tmp_path)
    loaded = settings.load()
    assert (loaded.home, loaded.batch_size) == (tmp_path / "data", 7)
    assert loaded.sql_url == f"sqlite:///{tmp_path}/some.db"
    assert settings.origins(os.environ)["batch_size"] == str(tmp_path / "poller.toml")


def test_what_poller_up_found_above_its_children_find_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are told of the home, and would not look for the file."""
    (tmp_path / "poller.toml").write_text("batch_size = 7\n")
    _go_below(monkeypatch, tmp_path)
    for name, value in up._same_settings(settings.load()).items():
        monkeypatch.setenv(name, value)
    loaded = settings.load()
    assert (loaded.home, loaded.batch_size) == (tmp_path / ".poller", 7)


@pytest.mark.parametrize(
    ("name", "hint"), [(".poller", "POLLER_HOME"), ("poller.toml", "POLLER_CONFIG")]
)
def test_what_is_above_and_somebody_elses_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, hint: str
) -> None:
    """Anybody may make a /tmp/.poller, and it would choose our servers."""
    found = tmp_path / name
    found.mkdir() if name == ".poller" else found.touch()
    _go_below(monkeypatch, tmp_path)
    _give_away(monkeypatch, found)
    with pytest.raises(errors.InvalidSetting, match=f"{name} belongs to another user") as caught:
        settings.load()
    assert f"{hint}={found}" in caught.value.hint


def test_a_home_that_may_not_be_read_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not taken for one on which nothing runs."""

    def refused(path: Path, *_: object) -> str:
        raise PermissionError if path.name == setting_sources.RUN_FILE else FileNotFoundError

    monkeypatch.setattr(Path, "read_text", refused)
    monkeypatch.setenv("POLLER_HOME", str(tmp_path / "home"))
    with pytest.raises(errors.InvalidSetting, match=r"you may not read \S+/home$"):
        settings.load()


def _go_below(monkeypatch: pytest.MonkeyPatch, top: Path) -> Path:
    below = top / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    return below


def _give_away(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, 65534, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)


def test_every_setting_is_described() -> None:
    """The reference in the docs is made of these sentences."""
    assert [
        name for name, field in settings.Settings.model_fields.items() if not field.description
    ] == []


DSN = "https://0123456789abcdef@sentry.example/42"


def test_the_key_of_a_dsn_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """`poller settings` shows where reports go; the redactor knows the key."""
    monkeypatch.setenv("POLLER_SENTRY_DSN", DSN)
    loaded = settings.load()
    shown = {row.name: row.value for row in setting_table.rows(loaded, os.environ)}
    assert shown["sentry_dsn"] == "https://********@sentry.example/42"
    assert masking.secret_parts(DSN) == ["0123456789abcdef"]
    assert "0123456789abcdef" not in repr(loaded)


@pytest.mark.parametrize(
    "text", ["sentry.example", "https://sentry.example/42", "https://key@sentry.example/", "x"]
)
def test_what_is_no_dsn_is_refused_without_repeating_it(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """By name, with the form it must have."""
    monkeypatch.setenv("POLLER_SENTRY_DSN", text)
    with pytest.raises(errors.InvalidSetting, match="sentry_dsn") as caught:
        settings.load()
    assert "https://KEY@HOST/NUMBER" in str(caught.value)
    assert text == "x" or text not in str(caught.value)


def test_an_empty_dsn_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a compose file leaves it."""
    monkeypatch.setenv("POLLER_SENTRY_DSN", "")
    assert settings.load().sentry_dsn is None


def test_session_limits_by_collector_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong one is refused by the name of the variable, with the word and what it takes."""
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


def test_a_poll_that_waited_for_its_turn_opens_no_breaker() -> None:
    """However often: it says nothing about the device."""
    rules = policies.breaker_rules(settings.Settings())
    assert (
        circuit_breaker.record(circuit_breaker.CLOSED, 1000, error_codes.HOST_BUSY, 0, rules, 0.5)
        == circuit_breaker.CLOSED
    )
    assert (
        circuit_breaker.record(circuit_breaker.CLOSED, 1000, error_codes.TIMEOUT, 0, rules, 0.5)
        != circuit_breaker.CLOSED
    )
