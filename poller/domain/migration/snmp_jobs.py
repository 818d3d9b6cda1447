"""The jobs of a `prometheus.yml` that scrape an snmp_exporter, and the targets of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from poller import errors
from poller.domain.inventory import duration
from poller.domain.migration import relabeling
from poller.domain.migration.relabeling import Labels, Rule

#: The path of the exporter's scrapes, and the login and interval where nothing is said.
PATH = "/snmp"
DEFAULT_AUTH = "public_v2"
DEFAULT_MODULE = "if_mib"
_DEFAULT_INTERVAL = "1m"
_DEFAULT_TIMEOUT = "10s"
_PARAM = "__param_"
#: Discoveries that are read here; those of other names run in Prometheus only.
_FILE_SD = "file_sd_configs"

#: Reads the files that a pattern names: their target groups, and faults of those that fail.
ReadGroups = Callable[[str], tuple[list[Any], list[str]]]


@dataclass(frozen=True, slots=True)
class ScrapedTarget:
    """An agent as Prometheus asks the exporter for it."""

    job: str
    target: str  # the parameter: an address, perhaps with a port
    modules: tuple[str, ...]
    auth: str
    context: str
    interval_ms: int
    timeout_ms: int
    labels: Mapping[str, str]  # those that its series have


@dataclass(slots=True)
class FoundJobs:
    """Targets of all SNMP jobs, and notes about what is not carried over."""

    targets: list[ScrapedTarget] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    other_jobs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find(config: Any, read_groups: ReadGroups) -> FoundJobs:
    """Return the SNMP jobs of a configuration. Raises InvalidInput for one that is none."""
    if not isinstance(config, Mapping) or not isinstance(config.get("scrape_configs"), list):
        raise errors.InvalidInput(
            "the file has no scrape_configs", hint="give the prometheus.yml of your Prometheus"
        )
    found = FoundJobs()
    defaults = _mapping(config.get("global") or {}, "global")
    for number, job in enumerate(config["scrape_configs"], 1):
        if not isinstance(job, Mapping):
            raise errors.InvalidInput(f"scrape_configs, entry {number}: this is no mapping")
        name = str(job.get("job_name") or f"entry {number}")
        if job.get("metrics_path") != PATH:
            found.other_jobs.append(name)
            continue
        found.jobs.append(name)
        _add_job(found, name, job, defaults, read_groups)
    return found


def _add_job(
    found: FoundJobs,
    name: str,
    job: Mapping[str, Any],
    defaults: Mapping[str, Any],
    read_groups: ReadGroups,
) -> None:
    where = f"job {name}"
    rules = [
        Rule.of(_mapping(rule, where), f"{where}, relabel_configs {number}")
        for number, rule in enumerate(_listed(job.get("relabel_configs")), 1)
    ]
    for key in job:
        if key.endswith("_sd_configs") and key != _FILE_SD:
            found.notes.append(
                f"{where}: {key} is not read: its targets are known to Prometheus only; export "
                "them to a file, or add them with `poller device import`"
            )
    if job.get("metric_relabel_configs"):
        found.notes.append(
            f"{where}: metric_relabel_configs stay with Prometheus, which applies them as before"
        )
    base = _base_labels(name, job, defaults)
    for address, given in _discovered(found, where, job, read_groups):
        labels = relabeling.relabel({**base, **given, "__address__": address}, rules)
        if labels is None:
            continue
        target = _target(name, job, labels, found.notes)
        if target is not None:
            found.targets.append(target)


def _base_labels(name: str, job: Mapping[str, Any], defaults: Mapping[str, Any]) -> Labels:
    """Return the labels that Prometheus gives every target of a job."""
    labels = {
        "job": name,
        "__scheme__": str(job.get("scheme") or "http"),
        "__metrics_path__": PATH,
        "__scrape_interval__": _first(job, defaults, "scrape_interval", _DEFAULT_INTERVAL),
        "__scrape_timeout__": _first(job, defaults, "scrape_timeout", _DEFAULT_TIMEOUT),
    }
    for key, values in _mapping(job.get("params") or {}, f"job {name}: params").items():
        given = _listed(values)
        if given:
            labels[f"{_PARAM}{key}"] = str(given[0])
    return labels


def _first(job: Mapping[str, Any], defaults: Mapping[str, Any], key: str, default: str) -> str:
    return str(job.get(key) or defaults.get(key) or default)


def _discovered(
    found: FoundJobs, where: str, job: Mapping[str, Any], read_groups: ReadGroups
) -> Iterable[tuple[str, Labels]]:
    """Yield the address and the labels of each target that the configuration or a file names."""
    groups = list(_listed(job.get("static_configs")))
    for entry in _listed(job.get(_FILE_SD)):
        for pattern in _listed(_mapping(entry, where).get("files")):
            of_files, faults = read_groups(str(pattern))
            groups += of_files
            found.notes += [f"{where}: {fault}" for fault in faults]
    for group in groups:
        body = _mapping(group, f"{where}: a group of targets")
        given = _mapping(body.get("labels") or {}, f"{where}: labels of a group of targets")
        labels = {str(key): str(text) for key, text in given.items()}
        for target in _listed(body.get("targets")):
            yield str(target), labels


def _target(
    job: str, config: Mapping[str, Any], labels: Labels, notes: list[str]
) -> ScrapedTarget | None:
    """Return the target of its final labels; None without a parameter `target`."""
    target = labels.get(f"{_PARAM}target", "")
    if not target:
        notes.append(
            f"job {job}: {labels.get('__address__', '')} has no parameter target; relabel_configs "
            "usually copy __address__ to __param_target"
        )
        return None
    interval_ms = _duration_ms(job, labels.get("__scrape_interval__", _DEFAULT_INTERVAL))
    timeout_ms = _duration_ms(job, labels.get("__scrape_timeout__", _DEFAULT_TIMEOUT))
    shown = {name: text for name, text in labels.items() if not name.startswith("__")}
    return ScrapedTarget(
        job=job,
        target=target,
        modules=_modules(config, labels),
        auth=labels.get(f"{_PARAM}auth", DEFAULT_AUTH),
        context=labels.get(f"{_PARAM}snmp_context", ""),
        interval_ms=interval_ms,
        timeout_ms=min(timeout_ms, interval_ms),
        # Without a rule for `instance` Prometheus would use the address of the exporter.
        labels={"instance": target, **shown},
    )


def _duration_ms(job: str, text: str) -> int:
    try:
        return duration.parse_ms(text)
    except errors.InvalidInput as error:
        raise errors.InvalidInput(f"job {job}: {error.message}", hint=error.hint) from None


def _modules(config: Mapping[str, Any], labels: Labels) -> tuple[str, ...]:
    """Return the modules: relabelling sees and changes the first parameter only."""
    params = config.get("params") or {}
    given = [str(text) for text in _listed(params.get("module"))]
    first = labels.get(f"{_PARAM}module", "")
    given = [first, *given[1:]] if first else given[1:]
    names = [name.strip() for text in given for name in text.split(",")]
    return tuple(dict.fromkeys(name for name in names if name)) or (DEFAULT_MODULE,)


def _listed(value: Any) -> Sequence[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise errors.InvalidInput(f"{where}: this is no mapping")
    return value
