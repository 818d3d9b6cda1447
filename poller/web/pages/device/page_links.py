"""Links of a page with a range, a search and pages of rows: each changes one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from poller.web.pages.device import plot_range
from poller.web.pages.device.plot_range import ShownRange


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link of a page to itself with other parameters."""

    title: str
    url: str
    chosen: bool = False
    rel: str = ""


@dataclass(frozen=True, slots=True)
class PageLinks:
    """The parameters of a page that its links keep, and its range."""

    shown: ShownRange
    now_ms: int
    kept: Sequence[tuple[str, str]] = ()  # such as the search

    @property
    def hidden(self) -> Sequence[tuple[str, str]]:
        """The parameters of the range, for a form of the page."""
        return list(self.shown.parameters().items())

    @property
    def lengths(self) -> Sequence[PageLink]:
        return [
            PageLink(each.title, self._url(each.parameters), each.chosen)
            for each in plot_range.choices(self.shown)
        ]

    @property
    def moves(self) -> Sequence[PageLink]:
        return [
            PageLink(each.title, self._url(each.parameters), rel=each.rel)
            for each in plot_range.moves(self.shown, self.now_ms)
        ]

    def url(self, **changes: object) -> str:
        """The address of this page with the same range, and some parameters more."""
        given = {key: str(value) for key, value in changes.items() if value not in ("", None, 0)}
        return self._url({**self.shown.parameters(), **given})

    def plot(self, target: str, metric: str, labels: Sequence[str]) -> str:
        """The parameters of the plot of a series over the same range."""
        pairs = [("target", target), ("metric", metric), *(("label", text) for text in labels)]
        return "?" + urlencode([*pairs, *self.shown.parameters().items()])

    def pages(self, offset: int, rows: int, total: int) -> Sequence[PageLink]:
        """The links to the page before and after these rows."""
        found = []
        if offset:
            found.append(PageLink("previous", self.url(after=max(0, offset - rows)), rel="prev"))
        if offset + rows < total:
            found.append(PageLink("next", self.url(after=offset + rows), rel="next"))
        return found

    def _url(self, parameters: Mapping[str, str]) -> str:
        return "?" + urlencode([*self.kept, *parameters.items()])
