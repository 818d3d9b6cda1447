"""docker-compose.yml is valid and without secrets, and its commands make a cluster that polls."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from poller.cli.up.listen_ports import free_port
from poller.db import engine as sql
from poller.db.record import run_ledger
from poller.domain.failures.outcome import Result
from poller.sim import fleet
from poller.sim.sim_process import simulated
from tests.acceptance.programs import environment, eventually
from tests.conftest import _postgres_binaries, missing

ROOT = Path(__file__).parents[2]
OURS = ("migrate", "first_user", "beat", "worker", "web", "flower")
#: Services that run once and end.
ONCE = ("migrate", "roles", "first_user", "scrape_token")

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "docker-compose.yml").read_text()))


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """The secrets that deploy/make-secrets writes."""
    subprocess.run(
        [ROOT / "deploy" / "make-secrets", tmp_path / "secrets"], check=True, capture_output=True
    )
    return tmp_path / "secrets"


def test_the_file_is_valid(tmp_path: Path) -> None:
    """docker-compose accepts the file."""
    program = shutil.which("docker-compose")
    if program is None:
        missing("docker-compose is not installed")
    done = subprocess.run(
        [program, "-f", ROOT / "docker-compose.yml", "config", "-q"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_service_is_watched_unprivileged_and_free_of_secrets(compose: dict[str, Any]) -> None:
    """Services have health checks, no root and loopback ports; there are two beats; secrets are
    files outside image and repository.
    """
    services = compose["services"]
    profile = {"scrape_token", "prometheus", "grafana"}
    assert set(services) == {"postgres", "valkey", "roles", "traps", *OURS, *profile}
    assert all(services[name]["profiles"] == ["observability"] for name in profile)
    for name in (*OURS, *profile, "roles", "traps"):
        assert services[name]["cap_drop"] == ["ALL"]
        assert name in ONCE or "healthcheck" in services[name]
        assert name == "traps" or all(
            port.startswith("127.0.0.1:") for port in services[name].get("ports", [])
        )
    assert (services["traps"]["profiles"], services["traps"]["ports"]) == (
        ["traps"],
        ["162:1162/udp"],
    )
    assert services["beat"]["deploy"]["replicas"] == 2
    assert "USER poller" in (ROOT / "Dockerfile").read_text()
    assert all(
        secret["file"].startswith("./deploy/secrets/") for secret in compose["secrets"].values()
    )
    tracked = subprocess.run(
        ["git", "check-ignore", "deploy/secrets/secret_key"], cwd=ROOT, capture_output=True
    )
    assert tracked.returncode == 0


def test_each_service_has_the_secrets_it_uses_and_no_others(compose: dict[str, Any]) -> None:
    """The vault is opened by workers and the trap listener; only migrate owns the tables."""
    services = compose["services"]
    having = {
        secret: {name for name in services if secret in services[name].get("secrets", [])}
        for secret in compose["secrets"]
    }
    assert having == {
        "postgres_password": {"postgres", "roles"},
        "app_password": {"roles"},
        "owner_database_url": {"migrate"},
        "app_database_url": {"first_user", "beat", "worker", "web", "traps", "scrape_token"},
        "valkey.conf": {"valkey"},
        "redis_url": {"beat", "worker", "web", "traps", "flower"},
        "secret_key": {"worker", "traps"},
        "flower_basic_auth": {"flower"},
        "admin_password": {"first_user", "grafana"},
    }
    for service in services.values():
        for value in service.get("environment", {}).values():
            name = str(value).removeprefix("/run/secrets/")
            assert name == value or name in service["secrets"], value


def test_make_secrets_keeps_existing_files_in_a_private_directory(secrets: Path) -> None:
    """A second run of make-secrets changes nothing."""
    before = {path.name: path.read_text() for path in secrets.iterdir()}
    subprocess.run([ROOT / "deploy" / "make-secrets", secrets], check=True, capture_output=True)
    assert {path.name: path.read_text() for path in secrets.iterdir()} == before
    assert secrets.stat().st_mode & 0o077 == 0
    assert "maxmemory-policy noeviction" in before["valkey.conf"]
    assert "appendonly yes" in before["valkey.conf"]


#: A variable of the shell that starts docker-compose, and its default.
_DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")


class Cluster:
    """The services of the file as plain processes, on a real Valkey and a real PostgreSQL."""

    def __init__(self, compose: dict[str, Any], secrets: Path, home: Path) -> None:
        self.services = compose["services"]
        self.secrets = secrets
        self.home = home
        self.server = sa.make_url((secrets / "owner_database_url").read_text())
        self.ports = {"8080": str(free_port()), "5555": str(free_port())}
        self.processes: list[subprocess.Popen[bytes]] = []

    def env(self, service: str) -> dict[str, str]:
        """Return the service's environment, with container paths and ports replaced by local
        ones.
        """
        given = {name: str(value) for name, value in self.services[service]["environment"].items()}
        given = {name: _DEFAULT.sub(r"\1", value) for name, value in given.items()}
        given = {
            name: value.replace("/run/secrets/", f"{self.secrets}/")
            for name, value in given.items()
        }
        given = {
            name: self.ports.get(value, value).replace("0.0.0.0", "127.0.0.1")
            for name, value in given.items()
        }
        if service == "roles":
            given |= {
                "PGHOST": self.server.host or "",
                "PGPORT": str(self.server.port),
                "PGUSER": self.server.username or "",
                "PGDATABASE": self.server.database or "",
                "ROLES": str(ROOT / "deploy" / "roles.sql"),
            }
        tools = f"{Path(sys.executable).parent}:{_postgres_binaries()}:{os.environ['PATH']}"
        return environment(self.home, PATH=tools, **given)

    def start(self, service: str) -> subprocess.Popen[bytes]:
        log = (self.home.parent / f"{service}{len(self.processes)}.log").open("wb")
        command = [word.replace("$$", "$") for word in self.services[service]["command"]]
        process = subprocess.Popen(
            command,
            env=self.env(service),
            cwd=self.home.parent,
            stdout=log,
            stderr=log,
        )
        self.processes.append(process)
        return process

    def run(self, *command: str, stdin: str | None = None, codes: Sequence[int] = (0,)) -> str:
        done = subprocess.run(
            command,
            env=self.env("worker"),
            cwd=self.home.parent,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode in codes, done.stderr
        return done.stdout

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.run("poller", "status", "--json", codes=(0, 1))))

    def stop(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture
def cluster(
    compose: dict[str, Any],
    secrets: Path,
    tmp_path: Path,
    fresh_postgres_url: str,
    valkey_url: str,
    redis_client: Any,
) -> Iterator[Cluster]:
    app_url = sa.make_url(fresh_postgres_url).set(username="poller_app")
    urls = {
        "owner_database_url": fresh_postgres_url,
        "app_database_url": app_url.render_as_string(hide_password=False),
        "redis_url": valkey_url,
    }
    for name, url in urls.items():
        (secrets / name).unlink()
        (secrets / name).write_text(url)
    made = Cluster(compose, secrets, tmp_path / "home")
    yield made
    made.stop()


def _assert_the_profile_can_scrape(cluster: Cluster, token: Path) -> None:
    """The token that the profile makes opens what Prometheus scrapes."""
    config = yaml.safe_load((ROOT / "deploy" / "prometheus" / "compose.yml").read_text())
    for job in config["scrape_configs"]:
        path = job.get("metrics_path", "/metrics")
        request = urllib.request.Request(
            f"http://127.0.0.1:{cluster.ports['8080']}{path}",
            headers={"Authorization": f"Bearer {token.read_text().strip()}"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200


def test_the_commands_of_the_file_make_a_cluster_that_polls(
    cluster: Cluster, tmp_path: Path, redis_client: Any
) -> None:
    """The commands migrate once and start two beats with one leader, workers, page and Flower;
    devices are then polled.
    """
    for once in ONCE:
        assert cluster.start(once).wait(timeout=60) == 0
    engine = sql.create((cluster.secrets / "app_database_url").read_text())
    _assert_the_role_owns_no_table(engine)
    today_ms = time.time_ns() // 1_000_000
    days = [1_000, *range(today_ms - 8 * 86_400_000, today_ms, 86_400_000)]  # 1970, and a week
    run_ledger.write(engine, [run_ledger.Run(1, day_ms, Result.OK) for day_ms in days])
    beats = [cluster.start("beat"), cluster.start("beat")]
    for service in ("worker", "web", "flower"):
        cluster.start(service)
    with simulated(fleet.devices(30)) as ports:
        rows = fleet.inventory(fleet.devices(30), ports.snmp, ports.routeros, "5s")
        (tmp_path / "devices.json").write_text(json.dumps(rows))
        for name, fields in fleet.CREDENTIALS.items():
            kind = fields["kind"]
            cluster.run("poller", "credential", "add", name, "--kind", kind, stdin=_secret(fields))
        cluster.run("poller", "device", "import", str(tmp_path / "devices.json"))
        eventually(
            lambda: cluster.status()["totals"].get("ok", 0) >= 60, 90, "polls by the cluster"
        )
        status = cluster.status()
        assert (status["standbys"], len(status["workers"])) == (1, 1)
        assert json.loads(cluster.run("poller", "board", "check", "--json"))["lost"] == 0
        assert redis_client.hexists("poller:redbeat:job:prune", "definition")
        eventually(  # the leader fires a new job at once
            lambda: run_ledger.counts(engine, 0) == run_ledger.counts(engine, 2_000),
            20,
            "the old run is pruned",
        )
        _assert_page_and_flower(cluster)
        _assert_the_profile_can_scrape(cluster, tmp_path / "scrape_token")
        _assert_a_standby_takes_over(cluster, beats)


def _assert_the_role_owns_no_table(engine: sa.Engine) -> None:
    for statement in (
        "CREATE TABLE more (id int)",
        "ALTER TABLE credentials ADD COLUMN more int",
        "TRUNCATE runs",
        "DELETE FROM alembic_version",
        "UPDATE audit SET actor = 'nobody'",
    ):
        with (
            pytest.raises(sa.exc.ProgrammingError, match=r"permission denied|must be owner"),
            engine.begin() as conn,
        ):
            conn.execute(sa.text(statement))


def _assert_page_and_flower(cluster: Cluster) -> None:
    cluster.run("poller", "status", "--json")  # exits with 0, now that all is polled
    page = f"http://127.0.0.1:{cluster.ports['8080']}/readyz"
    assert json.load(urllib.request.urlopen(page, timeout=5)) == {"status": "ready"}
    _assert_the_first_user_logs_in(cluster)
    flower = f"http://127.0.0.1:{cluster.ports['5555']}/workers"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(flower, timeout=5)
    assert refused.value.code == 401


def _assert_the_first_user_logs_in(cluster: Cluster) -> None:
    page = f"http://127.0.0.1:{cluster.ports['8080']}"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{page}/api/overview", timeout=5)
    assert refused.value.code == 401
    password = (cluster.secrets / "admin_password").read_text().strip()
    form = urllib.parse.urlencode({"name": "admin", "password": password, "next": "api/overview"})
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(f"{page}/login", form.encode(), timeout=10) as response:
        assert json.load(response)["schema"] == "poller.overview/1"


def _assert_a_standby_takes_over(cluster: Cluster, beats: list[subprocess.Popen[bytes]]) -> None:
    leader = int(cluster.status()["leader"]["name"].rpartition(":")[2])
    next(beat for beat in beats if beat.pid == leader).send_signal(signal.SIGTERM)
    eventually(lambda: cluster.status()["leader"]["epoch"] == 2, 10, "the standby leads")
    before = cluster.status()["totals"]["polls"]
    eventually(
        lambda: cluster.status()["totals"]["polls"] > before, 20, "polls under the new leader"
    )


def _secret(fields: Any) -> str:
    return fields.get("community") or f"{fields['username']}:{fields['password']}"
