"""Loads the installed jobs from entry points, once per process.

A job that breaks the contract is named with its fault and affects no other job.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import EntryPoint
from typing import Any, NamedTuple

from poller import errors, plugins
from poller.domain.inventory import api_version, naming
from poller.domain.inventory.api_version import Served
from poller.domain.jobs import job_queue
from poller.jobs.api import SERVED, JobSpec
from poller.plugins import Broken

GROUP = "poller.jobs"


class Admitted(NamedTuple):
    """A usable job, its version of the contract, and a notice about that version."""

    job: JobSpec
    api_version: int
    notice: str


@dataclass(frozen=True)
class Registry:
    """The jobs of a process by name, and the installed ones that cannot be used."""

    jobs: Mapping[str, JobSpec] = field(default_factory=dict)
    #: Job to distribution, as `name version`.
    distributions: Mapping[str, str] = field(default_factory=dict)
    broken: tuple[Broken, ...] = ()
    #: Job to the contract version in use.
    api_versions: Mapping[str, int] = field(default_factory=dict)
    #: Job to a sentence that names the end of its contract version, if one is planned.
    deprecated: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str) -> JobSpec:
        """Return a job. Raises NotFound with the nearest name, or with the fault."""
        if name in self.jobs:
            return self.jobs[name]
        for broken in self.broken:
            if broken.name == name:
                text = f'job "{name}" ({broken.distribution}) cannot be used'
                raise errors.NotFound(text, cause=broken.reason, hint=broken.hint)

        nearest = difflib.get_close_matches(name, self.jobs, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else ""
        text = f'job "{naming.printable(name)}" is not installed here'
        raise errors.NotFound(text, hint=hint)

    def by_queue(self) -> dict[str, list[JobSpec]]:
        """The jobs of each queue, by name. A queue has the jobs of one distribution."""
        queues: dict[str, list[JobSpec]] = {}
        for name, spec in sorted(self.jobs.items()):
            queue = job_queue.queue_of(self.distributions[name])
            queues.setdefault(queue, []).append(spec)
        return queues


def load(
    points: Iterable[EntryPoint] | None = None, served: Mapping[int, Served] = SERVED
) -> Registry:
    """Import every job of the entry-point group, built-ins and plugins alike."""
    loaded = plugins.load(GROUP, partial(admit, served=served), points)
    admitted = loaded.plugins.items()
    return Registry(
        jobs={name: each.job for name, each in admitted},
        distributions=loaded.distributions,
        broken=loaded.broken,
        api_versions={name: each.api_version for name, each in admitted},
        deprecated={name: each.notice for name, each in admitted if each.notice},
    )


def admit(spec: Any, name: str, served: Mapping[int, Served] = SERVED) -> Admitted:
    """Check a job against the contract. Raises ConfigError with the violation."""
    if not hasattr(spec, "api_version"):
        raise _no_spec(spec)
    version = api_version.choose(spec.api_version, served, "job")
    adapted = served[version].adapt(spec)
    if not isinstance(adapted, JobSpec):
        raise _no_spec(adapted)
    if adapted.name != name:
        raise errors.ConfigError(
            f'it calls itself "{naming.printable(adapted.name)}"',
            hint=f'its author gives the job and the entry point one name: job(name="{name}", ...)',
        )
    return Admitted(adapted, version, api_version.notice(version, served, "job"))


def _no_spec(value: Any) -> errors.ConfigError:
    return errors.ConfigError(
        f"it is no poller.jobs.api.JobSpec but a {type(value).__name__}",
        hint="its author decorates the function with @poller.jobs.api.job(...)",
    )
