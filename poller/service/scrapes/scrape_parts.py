"""The parts that all scrapes of a web process share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller.presentation.exposition.shape_text import ShapeTexts
from poller.service.scrapes.known_devices import KnownDevices
from poller.service.scrapes.last_poll_answers import LastPollAnswers
from poller.service.scrapes.last_polls import LastPolls
from poller.service.scrapes.scrape_sender import ScrapeSender
from poller.sinks import sink_options

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: The kind of the sink whose readings answer scrapes.
STORE = "sql"


@dataclass(frozen=True, slots=True)
class ScrapeParts:
    """The parts that scrapes stand on. Without the `sql` sink every scrape is polled."""

    services: Services
    devices: KnownDevices
    polls: LastPolls
    sender: ScrapeSender
    answers: LastPollAnswers
    shape_texts: ShapeTexts
    has_last_polls: bool

    def close(self) -> None:
        """End the threads of scrapes."""
        self.polls.close()
        self.sender.close()


def make(services: Services) -> ScrapeParts:
    """Make the parts. No store is asked yet."""
    devices = KnownDevices(services)
    sender = ScrapeSender(services)
    polls = LastPolls(services, devices)
    answers = LastPollAnswers(services, polls, sender)
    settings = services.settings
    kinds = [sink_options.kind_of(name, settings.sink) for name in settings.sinks]
    has_last_polls = STORE in kinds
    return ScrapeParts(services, devices, polls, sender, answers, ShapeTexts(), has_last_polls)
