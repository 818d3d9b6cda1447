"""The plots of an interface or a metric: the page, its data for the script, and its files."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, FastAPI, Query
from fastapi.responses import JSONResponse, Response, StreamingResponse

from poller import errors
from poller.db.inventory.targets import Target
from poller.domain.metrics.reading import Kind, Series
from poller.domain.series.series_line import SeriesLine
from poller.domain.series.series_plan import SeriesPlan
from poller.presentation.history import old_values, series_csv, series_json, series_picture
from poller.presentation.history.series_picture import NamedLine
from poller.service import site_limit
from poller.service.history import device_measures
from poller.service.inventory import target_actions
from poller.web.api.contract.needs import Call, Reading
from poller.web.page_routes.device.device_tabs import AskedRange, now_ms
from poller.web.pages.device import device_head, interface_list, plot_figures, plots
from poller.web.pages.device.page_links import PageLinks
from poller.web.pages.device.plot_range import ShownRange
from poller.web.pages.device.plots import Plot, Window
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame

#: Lines of one plot: more colours and dashes cannot be told apart.
MOST_LINES = 6
Name = Annotated[str, Query(max_length=300)]
Labels = Annotated[list[str] | None, Query(alias="label", max_length=20)]


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a plot page, as its address says it: an interface, or a metric."""

    target: str
    interface: str
    metric: str
    labels: Mapping[str, str]

    def parameters(self) -> list[tuple[str, str]]:
        """The parameters of the address."""
        pairs = [("target", self.target), ("interface", self.interface), ("metric", self.metric)]
        given = [(name, text) for name, text in pairs if text]
        return given + [("label", f"{name}={text}") for name, text in self.labels.items()]

    def selects(self) -> Callable[[Series], bool]:
        """Whether a series is asked for."""

        def wanted(series: Series) -> bool:
            if series.name != self.metric or series.kind is Kind.INFO:
                return False
            labels = dict(series.labels)
            return all(labels.get(name) == text for name, text in self.labels.items())

        return wanted


@dataclass(frozen=True, slots=True)
class Found:
    """The plots of a subject, and how its history was read."""

    title: str
    about: Sequence[str]
    target: Target
    plots: Sequence[Plot]
    plan: SeriesPlan

    def plot(self, plot_id: str) -> Plot:
        """Return one plot. Raises NotFound."""
        found = next((each for each in self.plots if each.id == plot_id), None)
        if found is None:
            known = ", ".join(each.id for each in self.plots) or "none"
            raise errors.NotFound(f'there is no plot "{plot_id}"', hint=f"there is {known}")
        return found


def _subject(
    target: Name = "", interface: Name = "", metric: Name = "", labels: Labels = None
) -> Subject:
    if bool(interface) == bool(metric) or not target:
        raise errors.InvalidInput(
            "target, interface, metric: give the target, and either an interface or a metric",
            hint="open the pages Interfaces, Gauges or All metrics of the device",
        )
    pairs = {}
    for word in labels or ():
        name, equals, text = word.partition("=")
        if not equals:
            raise errors.InvalidInput(f'label: "{word}" has no value', hint="label=ifName=eth0")
        pairs[name] = text
    return Subject(target, interface, metric, pairs)


#: A parameter of a route: what its plots are of.
AskedSubject = Annotated[Subject, Depends(_subject)]


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the page of plots and its files."""
    _add_page(app, page)
    _add_files(app)


def _add_page(app: FastAPI, page: PageRenderer) -> None:
    @app.get("/devices/{name}/plots")
    def show_plots(
        call: Reading,
        frame: RequestedFrame,
        name: str,
        subject: AskedSubject,
        shown: AskedRange,
        table: Annotated[str, Query(max_length=20)] = "",
    ) -> Response:
        """Plots as pictures by the server; a script makes them zoom."""
        device = site_limit.visible_device(call.services, call.actor, name)
        found = read(call, name, subject, shown)
        at_ms = now_ms()
        return page.respond(
            "device/device_plots.html",
            frame,
            head=device_head.of_device(
                device, "interfaces" if subject.interface else "metrics", at_ms
            ),
            found=found,
            figures=[plot_figures.figure(each) for each in found.plots],
            links_of=PageLinks(shown, at_ms, subject.parameters()),
            table=plot_figures.table(found.plot(table)) if table else None,
            command=_command(name, subject, shown),
        )


def _add_files(app: FastAPI) -> None:
    @app.get("/devices/{name}/plots.json", include_in_schema=False)
    def plots_document(
        call: Reading,
        name: str,
        subject: AskedSubject,
        shown: AskedRange,
    ) -> JSONResponse:
        """The plots of a page as columns of numbers, for its script."""
        found = read(call, name, subject, shown)
        documents = [plot_figures.document(each) for each in found.plots]
        return JSONResponse({"read": found.plan.sentence(), "plots": documents})

    @app.get("/devices/{name}/plots.svg", include_in_schema=False)
    def plot_picture(
        call: Reading,
        name: str,
        subject: AskedSubject,
        shown: AskedRange,
        plot: Name,
    ) -> Response:
        """One plot as a picture with axes, which needs no style sheet."""
        found = read(call, name, subject, shown)
        chosen = found.plot(plot)
        title = f"{name} {found.title}: {chosen.title}"
        lines = [NamedLine(each.name, each.line) for each in chosen.lines]
        svg = series_picture.svg(lines, title, shown.start_ms, shown.end_ms)
        headers = _download(f"{chosen.id}.svg")
        return Response(svg, media_type="image/svg+xml", headers=headers)

    @app.get("/devices/{name}/plots.csv", include_in_schema=False)
    def plot_points(
        call: Reading,
        name: str,
        subject: AskedSubject,
        shown: AskedRange,
        plot: Name,
    ) -> StreamingResponse:
        """The points of one plot, as `poller readings --csv` writes them."""
        found = read(call, name, subject, shown)
        chosen = found.plot(plot)
        items = (series_json.item(name, found.target.name, each.line) for each in chosen.lines)
        headers = _download(f"{chosen.id}.csv") | {"X-Poller-History": found.plan.sentence()}
        return StreamingResponse(series_csv.lines(items), media_type="text/csv", headers=headers)


def read(call: Call, device: str, subject: Subject, shown: ShownRange) -> Found:
    """Return the plots of a subject. Raises NotFound, InvalidInput, StoreError."""
    target = target_actions.show(call.services, call.actor, device, subject.target)
    if subject.interface:
        return _of_interface(call, target, subject, shown)
    return _of_metric(call, target, subject, shown)


def _of_interface(call: Call, target: Target, subject: Subject, shown: ShownRange) -> Found:
    row, plan = device_measures.interface_row(
        call.services,
        call.actor,
        target.device,
        target.name,
        subject.interface,
        shown.asked(target.interval_ms),
        now_ms(),
    )
    interface = row.interface
    age = old_values.age(target, row.at_ms, now_ms())
    status, _ = interface_list.status(interface, is_old=bool(age))
    about = [interface.alias, status, age, interface_list.speed(interface)]
    window = Window(shown.start_ms, shown.end_ms, plan.step_ms)
    found = plots.of_interface(interface, row.lines, window)
    return Found(interface.key, [text for text in about if text], target, found, plan)


def _of_metric(call: Call, target: Target, subject: Subject, shown: ShownRange) -> Found:
    _, lines, plan, newest = device_measures.named_lines(
        call.services,
        call.actor,
        target.device,
        target.name,
        subject.selects(),
        shown.asked(target.interval_ms),
        MOST_LINES,
        now_ms(),
    )
    if not lines and newest is not None:
        _refuse_unknown(subject, newest.readings.series.series)
    window = Window(shown.start_ms, shown.end_ms, plan.step_ms)
    drawn = list(_drawn(lines, window))
    labels = ", ".join(f"{name}={text}" for name, text in subject.labels.items())
    return Found(subject.metric, [labels] if labels else [], target, drawn, plan)


def _drawn(lines: Sequence[SeriesLine], window: Window) -> Iterator[Plot]:
    """One plot for each series; ids are numbered after the first."""
    for number, line in enumerate(lines):
        plot = plots.of_line(line, window)
        yield plots.renamed(plot, plot.id if not number else f"{plot.id}{number + 1}")


def _refuse_unknown(subject: Subject, series: Sequence[Series]) -> None:
    """Raise NotFound for a metric that the newest poll has not. One that it has may be unknown."""
    wanted = subject.selects()
    if not any(wanted(each) for each in series):
        raise errors.NotFound(
            f'target "{subject.target}" has no such series of "{subject.metric}"',
            hint="All metrics lists what it has",
        )


def _command(device: str, subject: Subject, shown: ShownRange) -> str:
    """The command that lists the same points."""
    metric = subject.metric or "Octets"
    words = ["poller", "readings", f"{device}/{subject.target}", "--metric", metric]
    if subject.interface:
        words += ["--label", f"ifName={subject.interface}"]
    for name, text in subject.labels.items():
        words += ["--label", f"{name}={text}"]
    words += ["--since", shown.name or str(series_json.instant(shown.start_ms))]
    if not shown.name:
        words += ["--until", str(series_json.instant(shown.end_ms))]
    return shlex.join(words)


def _download(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}
