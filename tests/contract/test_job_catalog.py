"""The catalogue of jobs: workers announce, people pause, the leader tells."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import errors
from poller.db import database_clock, tables
from poller.db import engine as sql
from poller.db.jobs import job_catalog
from poller.domain.jobs.job_schedule import Cadence, Cron
from poller.domain.jobs.job_terms import CatchUp, JobTerms

TIDY = JobTerms("tidy", Cadence(60_000), "Tidies up.")
NIGHTLY = JobTerms(
    "nightly",
    Cron("0 2 * * *", "Europe/Amsterdam"),
    retry_delays_s=(),
    catch_up=CatchUp.EVERY_PLAN,
    overlap=True,
)
QUEUE, PACKAGE = "job.poller", "poller 1.0"


def announce(engine: Engine, *terms: JobTerms, package: str = PACKAGE) -> None:
    job_catalog.announce(engine, QUEUE, package, terms)


def names(engine: Engine, with_gone: bool = False) -> list[str]:
    return [job.name for job in job_catalog.listing(engine, with_gone)]


def test_announced_terms_are_read_as_they_were(engine: Engine) -> None:
    """Every field comes back, and the job is neither paused nor gone."""
    announce(engine, TIDY, NIGHTLY)
    nightly, tidy = job_catalog.listing(engine)
    assert (nightly.terms, tidy.terms) == (NIGHTLY, TIDY)
    assert (tidy.name, tidy.queue, tidy.distribution) == ("tidy", QUEUE, PACKAGE)
    assert (tidy.paused_ms, tidy.paused_by, tidy.gone_ms, tidy.told) == (None, "", None, "")


def test_the_same_announcement_writes_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every worker announces when it starts; only a change is written."""
    announce(engine, TIDY, NIGHTLY)
    with monkeypatch.context() as patched:
        patched.setattr(sql, "writing", None)
        announce(engine, NIGHTLY, TIDY)


def test_an_announcement_replaces_changed_terms_and_versions(engine: Engine) -> None:
    """A new release brings its terms and its version; the pause of a person stays."""
    announce(engine, TIDY, NIGHTLY)
    job_catalog.pause(engine, "tidy", "ann")
    changed = replace(TIDY, schedule=Cadence(5_000))
    announce(engine, changed, NIGHTLY, package="poller 1.1")
    nightly, tidy = job_catalog.listing(engine)
    assert tidy.terms == changed
    assert (tidy.paused_by, tidy.distribution) == ("ann", "poller 1.1")
    assert (nightly.terms, nightly.distribution) == (NIGHTLY, "poller 1.1")


def test_jobs_that_a_package_no_longer_has_are_gone(engine: Engine) -> None:
    """Only jobs of the same queue go; a job that comes back is there again."""
    announce(engine, TIDY, NIGHTLY)
    job_catalog.announce(engine, "job.other", "other 1", [JobTerms("else", Cadence(1_000))])
    announce(engine, TIDY)
    assert names(engine) == ["else", "tidy"]
    assert names(engine, with_gone=True) == ["else", "nightly", "tidy"]
    assert job_catalog.get(engine, "nightly").gone_ms is not None
    announce(engine, TIDY, NIGHTLY)
    assert names(engine) == ["else", "nightly", "tidy"]
    announce(engine)
    assert names(engine) == ["else"]


def test_workers_with_two_versions_of_a_package_do_not_undo_each_other(engine: Engine) -> None:
    """The terms of the worker that started last hold; the job that only the other has comes back.

    From then on no announcement changes anything: each change would be an event.
    """
    old, new = "poller 1.0", "poller 1.1"
    old_jobs = [TIDY, NIGHTLY]
    new_jobs = [replace(TIDY, schedule=Cadence(5_000)), JobTerms("extra", Cadence(60_000))]
    announce(engine, *old_jobs, package=old)
    old_since_ms = database_clock.now_ms(engine)
    time.sleep(0.005)
    announce(engine, *new_jobs, package=new)
    new_since_ms = database_clock.now_ms(engine)
    time.sleep(0.005)

    job_catalog.announce(engine, QUEUE, old, old_jobs, old_since_ms)
    settled = job_catalog.listing(engine, with_gone=True)
    assert [(job.name, job.distribution, job.gone_ms) for job in settled] == [
        ("extra", new, None),
        ("nightly", old, None),
        ("tidy", new, None),
    ]
    assert settled[2].terms == new_jobs[0]
    for _ in range(2):
        job_catalog.announce(engine, QUEUE, new, new_jobs, new_since_ms)
        job_catalog.announce(engine, QUEUE, old, old_jobs, old_since_ms)
    assert job_catalog.listing(engine, with_gone=True) == settled

    announce(engine, *new_jobs, package=new)  # the old worker is replaced
    assert names(engine) == ["extra", "tidy"]


def test_a_job_that_moved_to_another_package_is_in_its_queue(engine: Engine) -> None:
    """The last package that announced a name has it; the first one's later restart keeps it so."""
    announce(engine, TIDY, NIGHTLY)
    job_catalog.announce(engine, "job.other", "other 1", [TIDY])
    announce(engine, NIGHTLY)
    job = job_catalog.get(engine, "tidy")
    assert (job.queue, job.distribution, job.gone_ms) == ("job.other", "other 1", None)


def test_an_unknown_name_is_refused_with_the_nearest(engine: Engine) -> None:
    """A mistyped name gets a hint, whatever was to be done with the job."""
    announce(engine, TIDY)
    for action in (
        lambda: job_catalog.get(engine, "tidyy"),
        lambda: job_catalog.pause(engine, "tidyy", "ann"),
        lambda: job_catalog.resume(engine, "tidyy"),
    ):
        with pytest.raises(errors.NotFound) as refused:
            action()
        assert "tidy" in refused.value.hint


def test_a_job_is_paused_and_resumed_once(engine: Engine) -> None:
    """The first call changes the row, the second says that nothing changed."""
    announce(engine, TIDY)
    announced_ms = job_catalog.get(engine, "tidy").announced_ms
    time.sleep(0.005)
    assert job_catalog.pause(engine, "tidy", "ann")
    assert not job_catalog.pause(engine, "tidy", "bob")
    job = job_catalog.get(engine, "tidy")
    assert job.paused_ms is not None
    assert job.paused_by == "ann"
    assert job_catalog.resume(engine, "tidy")
    assert not job_catalog.resume(engine, "tidy")
    resumed = job_catalog.get(engine, "tidy")
    assert resumed.paused_ms is None
    assert resumed.announced_ms > announced_ms, "its missed plans are due from now on"


def test_marked_jobs_are_gone_and_forgotten_ones_have_no_row(engine: Engine) -> None:
    """The leader marks jobs of a package that no worker has; a person forgets them."""
    announce(engine, TIDY, NIGHTLY)
    job_catalog.mark_gone(engine, [])
    job_catalog.mark_gone(engine, ["tidy", "unknown"])
    gone_ms = job_catalog.get(engine, "tidy").gone_ms
    assert names(engine) == ["nightly"]
    job_catalog.mark_gone(engine, ["tidy"])
    assert job_catalog.get(engine, "tidy").gone_ms == gone_ms
    job_catalog.forget(engine, "tidy")
    assert names(engine, with_gone=True) == ["nightly"]


def test_a_state_is_told_once(engine: Engine) -> None:
    """Of two leaders that saw the same state before, one tells the new one."""
    announce(engine, TIDY)
    assert job_catalog.tell(engine, "tidy", "", "ok")
    assert not job_catalog.tell(engine, "tidy", "", "failing")
    assert job_catalog.get(engine, "tidy").told == "ok"


def test_terms_that_cannot_be_read_hide_no_other_job(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """A row of another release is left out with a warning, and mended by an announcement."""
    announce(engine, TIDY, NIGHTLY)
    with sql.writing(engine) as conn:
        broken = sa.update(tables.jobs).where(tables.jobs.c.name == "tidy")
        conn.execute(broken.values(terms={"name": "tidy"}))
    assert names(engine) == ["nightly"]
    assert "tidy" in caplog.text
    announce(engine, TIDY, NIGHTLY)
    assert names(engine) == ["nightly", "tidy"]
