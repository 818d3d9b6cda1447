"""`poller.scrape`: one poll for a scrape. The flow is in workers/scrapes/scrape_runner.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poller import bootstrap, errors
from poller.app import app
from poller.domain.scrapes.scrape_poll import ScrapePoll
from poller.state.keys import URGENT_PRIORITY
from poller.state.publish_errors import broker_errors
from poller.tasks import store_failures

if TYPE_CHECKING:
    from poller.workers.scrapes.scrape_runner import ScrapeRunner

#: Clocks of hosts may differ by this much before messages are dropped too early. `until_ms` is of
#: the clock of Redis and decides.
CLOCKS_DIFFER_S = 60


@app.task(name="poller.scrape", bind=True, ignore_result=True, throws=(errors.StoreError,))
def scrape(self: Any, wanted: str, name: str, until_ms: int) -> None:
    """Poll once and store the result under `name`; nobody waits for it after `until_ms`."""
    with store_failures.recorded(self.name):
        left_s = (until_ms - bootstrap.services().board.now_ms()) / 1000
        if left_s > 0:
            _runner(self.request.hostname).run(ScrapePoll.from_json(wanted), name, left_s)


def send(wanted: ScrapePoll, name: str, until_ms: int, within_s: float) -> None:
    """Publish a poll that no worker takes up later. Raises StoreError."""
    with broker_errors():
        scrape.apply_async(
            (wanted.to_json(), name, until_ms),
            queue=wanted.queue,
            priority=URGENT_PRIORITY,
            expires=within_s + CLOCKS_DIFFER_S,
            argsrepr=f"({wanted.collector} {wanted.address})",
            kwargsrepr="{}",
            add_to_parent=False,
            retry=False,
        )


def _runner(hostname: str) -> ScrapeRunner:
    from poller.workers.process import worker_process

    return worker_process.scrapes(hostname)
