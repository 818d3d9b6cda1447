"""The text of an answer to `/snmp`: the samples of a poll and the metrics about the scrape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from poller import errors
from poller.collectors.snmp.modules import device_table, module_catalog
from poller.domain.failures.outcome import Result
from poller.domain.record.overview import State
from poller.domain.scrapes import failed_parts, scrape_answer
from poller.domain.scrapes.scrape_answer import ScrapeAnswer
from poller.domain.scrapes.scrape_poll import ScrapePoll, ScrapeResult
from poller.presentation.exposition import scrape_metrics
from poller.presentation.exposition.scrape_metrics import ScrapeCost
from poller.presentation.exposition.shape_text import ShapeText, ShapeTexts
from poller.service.scrapes.last_poll_loader import LastPoll
from poller.service.scrapes.module_cover import Cover


def of_last_poll(shape_texts: ShapeTexts, cover: Cover, poll: LastPoll) -> bytes:
    """Return the text of a stored poll. The scrape itself sent no packet to the device."""
    if poll.stored is None:
        return b""
    readings = poll.stored.readings
    shape = shape_texts.get(readings.series, cover.help_texts, cover.shown)
    cost = ScrapeCost(poll.collect_ms / 1000, shape.samples)
    text = shape.text(readings.values) + scrape_metrics.of_snmp(cover.modules, cost)
    if poll.status.state is State.DEGRADED:
        failed = failed_parts.parse(poll.status.message)
        shown = [part for part in failed if _concerns(part, cover)]
        text += scrape_metrics.partial(shown)
    return text.encode()


def of_result(target: str, wanted: ScrapePoll, result: ScrapeResult) -> ScrapeAnswer:
    """Return the answer of a poll of the scrape's own; 500 if the device gave nothing, 503 if it
    was not asked.
    """
    if result.readings is None:
        is_ours = result.result is Result.REFUSED
        status = scrape_answer.UNAVAILABLE if is_ours else scrape_answer.FAILED
        text = f"error polling {target}: {result.code}: {result.message}"
        return scrape_answer.failure(status, text)
    names: Sequence[str] = wanted.options.get("modules", ())
    text = ShapeText(result.readings.series, _help_texts(wanted)).text(result.readings.values)
    duration_s = result.duration_ms / 1000
    cost = ScrapeCost(duration_s, len(result.readings.values), result.sent, result.retried)
    text += scrape_metrics.of_snmp(names, cost)
    text += scrape_metrics.partial(_failed(result))
    text += scrape_metrics.age(0.0)
    return ScrapeAnswer(scrape_answer.OK, text.encode(), is_own_poll=True)


def _failed(result: ScrapeResult) -> list[tuple[str, str]]:
    if not result.failed:
        return []
    message = "; ".join(f"{part}: {error}" for part, error in result.failed)
    return failed_parts.parse(message)


def _concerns(part: tuple[str, str], cover: Cover) -> bool:
    module, _ = part
    return not module or not cover.modules or module in cover.modules


def _help_texts(wanted: ScrapePoll) -> Mapping[str, str]:
    """The help of the metrics; none if this host lacks the files of the workers."""
    options = wanted.options
    try:
        names = tuple(options.get("modules", ()))
        if not names:
            names = tuple(sorted(device_table.table(options.get("match", "")).names()))
        return module_catalog.select(names, tuple(options.get("config", ()))).help
    except errors.ConfigError:
        return {}
