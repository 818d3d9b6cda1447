"""Whether the polls of a target have what a scrape asks for, and which of their metrics it gets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors
from poller.collectors.snmp.modules import device_table, module_catalog
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.options import SnmpOptions
from poller.db.scrapes.scraped_devices import ScrapedTarget
from poller.domain.scrapes.scrape_query import SnmpQuery

if TYPE_CHECKING:
    from poller.bootstrap import Services

SNMP = "snmp"


@dataclass(frozen=True, slots=True)
class Cover:
    """A target whose polls answer a scrape. `shown` are names of metrics; None shows all."""

    target: ScrapedTarget
    modules: tuple[str, ...]  # those that the scrape gets; () is unknown: the device chooses
    help_texts: Mapping[str, str]
    shown: frozenset[str] | None = None


def find(
    services: Services,
    found: Iterable[ScrapedTarget],
    query: SnmpQuery,
    port: int | None,
) -> Cover | None:
    """Return the target that covers a scrape; None without one. Enabled targets go first."""
    candidates = [target for target in found if target.collector == SNMP]
    candidates.sort(key=lambda target: not target.enabled)
    for target in candidates:
        cover = _cover(services, target, query, port)
        if cover is not None:
            return cover
    return None


def check_names(modules: Collection[str], *configs: tuple[str, ...]) -> None:
    """Raise InvalidInput in snmp_exporter's words for a module that no file has."""
    for name in modules:
        if not any(name in module_catalog.names(config) for config in configs):
            raise errors.InvalidInput(f"Unknown module '{name}'")


def _cover(
    services: Services, target: ScrapedTarget, query: SnmpQuery, port: int | None
) -> Cover | None:
    try:
        options = services.registry.options(SNMP, target.options)
        if not isinstance(options, SnmpOptions) or not _is_same_agent(options, query, port):
            return None
        if query.auth and query.auth not in (target.credential, options.auth):
            return None
        return _shown(target, options, query.modules, services.settings.snmp_config)
    except errors.ConfigError:
        return None  # a target with options or files that cannot be used covers nothing


def _is_same_agent(options: SnmpOptions, query: SnmpQuery, port: int | None) -> bool:
    return port in (None, options.port) and query.context == options.context


def _shown(
    target: ScrapedTarget,
    options: SnmpOptions,
    asked: tuple[str, ...],
    config: tuple[str, ...],
) -> Cover | None:
    polled = options.modules
    help_texts = _help_texts(options)
    if not asked:
        return Cover(target, polled, help_texts)
    if config and _has_others(asked, options.config, config):
        return None
    if asked == polled:
        return Cover(target, polled, help_texts)
    certain = polled or device_table.table(options.match).base
    if not set(asked) <= set(certain):
        return None
    own = module_catalog.select(asked, options.config)
    others = tuple(name for name in certain if name not in asked)
    if others and _differ(own, module_catalog.select(others, options.config)):
        return None
    return Cover(target, asked, help_texts, frozenset(own.help))


def _has_others(asked: tuple[str, ...], polled: tuple[str, ...], config: tuple[str, ...]) -> bool:
    """Whether the files of scrapes have other modules of these names than those of a target."""
    if polled == config:
        return False
    check_names(asked, config)
    of_target = module_catalog.select(asked, polled)
    return of_target.modules != module_catalog.select(asked, config).modules


def _differ(own: ModuleSet, others: ModuleSet) -> bool:
    """Whether a metric of the asked modules comes from another one with other labels."""
    metrics = {metric.name: metric for module in own.modules for metric in module.metrics}
    for module in others.modules:
        for metric in module.metrics:
            if metric.name in metrics and metrics[metric.name] != metric:
                return True
    return False


def _help_texts(options: SnmpOptions) -> Mapping[str, str]:
    names = options.modules or tuple(sorted(device_table.table(options.match).names()))
    return module_catalog.select(names, options.config).help
