"""Real processes report their bugs and store failures to a Sentry server on loopback, and never
wait for it.
"""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import job_package
from poller.db.inventory import imports
from poller.db.jobs import job_history
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.jobs.job_run import Status
from poller.domain.jobs.run_totals import RunOutcome
from poller.state.cluster import job_totals
from tests.acceptance import troublemaker
from tests.acceptance.cluster import Cluster, soon
from tests.acceptance.programs import POLLER
from tests.ingest import KEY, Ingest

pytestmark = pytest.mark.timeout(120)

SECRET = "s3cr3t-community"


def cluster_for(directory: Path, ingest: Ingest) -> Cluster:
    made = Cluster(directory, POLLER_SENTRY_DSN=ingest.dsn, NO_PROXY="127.0.0.1")
    troublemaker.install(directory / "plugins")
    made.valkey.start()
    return made


def add_troublemakers(cluster: Cluster, **deeds: str) -> None:
    """Add one device for each deed."""
    drafts = {
        name: TargetDraft(
            "t", troublemaker.NAME, {"do": name, "text": text}, interval_ms=1000, timeout_ms=900
        )
        for name, text in deeds.items()
    }
    rows = [imports.Row(DeviceDraft(name, "127.0.0.1"), [draft]) for name, draft in drafts.items()]
    imports.apply_import(cluster.services.engine, rows)


def named(role: str, *fingerprint: str) -> Callable[[dict[str, Any]], bool]:
    return lambda event: (
        event["tags"]["role"] == role and event["fingerprint"][: len(fingerprint)] == [*fingerprint]
    )


@pytest.fixture
def ingest() -> Iterator[Ingest]:
    with Ingest() as server:
        yield server


def test_worker_and_beat_report_only_faults_of_the_platform(tmp_path: Path, ingest: Ingest) -> None:
    """A crashing plugin and a lost store are reported; a device that does not respond is not."""
    with cluster_for(tmp_path, ingest) as cluster:
        add_troublemakers(
            cluster, crash=f"community={SECRET}", time_out="", never_end="", answer=""
        )
        worker, beat = cluster.start_worker(), cluster.start_beat()
        crash = ingest.wait_for(named("worker", "collector", troublemaker.NAME, "KeyError"), 40)
        cut_off = ingest.wait_for(
            named("worker", "collector", troublemaker.NAME, "collector_ignored_cancellation")
        )
        assert crash["exception"]["values"][-1]["stacktrace"]["frames"][-1]["function"] == "collect"
        assert cut_off["tags"]["collector"] == troublemaker.NAME
        assert "collector=troublemaker" in worker.text()
        cluster.valkey.kill()
        ingest.wait_for(named("beat", "store", "StoreUnavailable"))
        ingest.wait_for(
            lambda event: event["tags"]["role"] == "worker" and "collector" not in event["tags"]
        )
        sent = b"".join(ingest.bodies).decode()
        kinds = {
            value["type"]
            for event in ingest.events
            for value in event.get("exception", {}).get("values", ())
        }
        assert "DeviceTimeout" not in kinds
        assert not [secret for secret in (SECRET, KEY) if secret in sent]
        assert ingest.others == []
        cluster.valkey.start()
        for program in (beat, worker):
            program.terminate()
            assert program.wait(within_s=20) == 0, program.text()[-2000:]


def test_a_job_checks_in_and_is_counted(tmp_path: Path, ingest: Ingest) -> None:
    """Sentry gets begin and end of a run; the counters outlive the worker that ran it."""
    with cluster_for(tmp_path, ingest) as cluster:
        job_package.write(tmp_path / "plugins", job_package.together(1, every_s=2))
        worker, beat = cluster.start_worker(), cluster.start_beat()

        def own() -> list[dict[str, Any]]:
            return [one for one in ingest.check_ins if one["monitor_slug"] == "together_0000"]

        soon(lambda: len(own()) >= 2, 40, "a run checked in")
        began, ended = own()[:2]
        assert (began["status"], ended["status"]) == ("in_progress", "ok")
        assert began["check_in_id"] == ended["check_in_id"]
        schedule = {"type": "interval", "value": 1, "unit": "minute"}
        assert ended["monitor_config"]["schedule"] == schedule
        for program in (beat, worker):
            program.terminate()
            assert program.wait(within_s=20) == 0, program.text()[-2000:]

        services = cluster.services
        totals = job_totals.read(services.redis, services.keys)["together_0000"]
        rows = job_history.runs(services.engine, "together_0000")
        succeeded = sum(row.status is Status.SUCCESS for row in rows)
        assert totals.outcomes[RunOutcome.SUCCESS] == succeeded >= 1
        assert totals.starts == succeeded
        assert totals.cumulative()[-1] == succeeded


def test_web_reports_its_bugs(tmp_path: Path, ingest: Ingest) -> None:
    """A page that cannot be made is one report, with the role that made it."""
    with cluster_for(tmp_path, ingest) as cluster:
        env = cluster.environment(cluster.valkey.port, {"POLLER_WEB_PORT": "0"})
        env["PYTHONPATH"] = os.pathsep.join([_bug(tmp_path / "bug"), env.get("PYTHONPATH", "")])
        log = tmp_path / "web.log"
        with log.open("wb") as out:
            web = subprocess.Popen([*POLLER, "web"], env=env, cwd=tmp_path, stdout=out, stderr=out)
        try:
            url = soon(lambda: _served(log), 20, "the page is served")
            with pytest.raises(urllib.error.HTTPError, match="500"):
                urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                    f"{url}api/overview", timeout=10
                )
            event = ingest.wait_for(named("web"))
            assert event["exception"]["values"][-1]["type"] == "ValueError"
            assert not event.get("request")
        finally:
            web.terminate()
            web.wait(timeout=10)


def _bug(folder: Path) -> str:
    """Make a directory for PYTHONPATH in which the overview raises an error."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "from poller.state.cluster import overview_reader\n"
        "def read(*_): raise ValueError('a bug')\n"
        "overview_reader.read = read\n"
    )
    return str(folder)


def _served(log: Path) -> str | None:
    lines = [line for line in log.read_text().splitlines() if "page_served" in line]
    return lines[0].partition("url=")[2].split()[0] if lines else None


def test_a_server_that_never_answers_delays_neither_polls_nor_a_stop(tmp_path: Path) -> None:
    """Polls go on, and each process stops as soon as without reports."""
    with Ingest(answer_s=300) as silent, cluster_for(tmp_path, silent) as cluster:
        add_troublemakers(cluster, crash="")
        cluster.add_targets(100, interval_s=1.0)
        worker, beat = cluster.start_worker(), cluster.start_beat()
        soon(lambda: silent.bodies, 40, "a report is on its way")
        began = time.time()
        soon(
            lambda: len({poll.target for poll in cluster.record.polls(began)}) == 100,
            10,
            "the others are polled",
        )
        for program in (beat, worker):
            stopping = time.monotonic()
            program.terminate()
            assert program.wait(within_s=20) == 0, program.text()[-2000:]
            assert time.monotonic() - stopping < 5


def test_an_invalid_dsn_is_refused(tmp_path: Path, ingest: Ingest) -> None:
    """The error at start names the setting and does not repeat the DSN."""
    with cluster_for(tmp_path, ingest) as cluster:
        worker = cluster.start_worker(POLLER_SENTRY_DSN=f"https://sentry.example/{KEY}")
        assert worker.wait(within_s=30) != 0
        assert "sentry_dsn" in worker.text()
        assert "https://KEY@HOST/NUMBER" in worker.text()
        assert KEY not in worker.text()
