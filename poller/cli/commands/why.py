"""`poller why`: why a target is polled as it is, in one sentence, then in detail."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments.target_arguments import TargetWord, no_target, split_target
from poller.cli.inventory.inventory_database import database
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, duration_column
from poller.cli.output.render import Json
from poller.presentation.alerts import alert_sentences
from poller.presentation.targets import why_json, why_types

if TYPE_CHECKING:
    from poller.domain.why.explanation import Explanation


def _may_take(item: Item) -> str:
    return "yes" if item["fits"] else "no"


_STEPS = (
    column("STEP", "name", fit=Fit.WHOLE),
    duration_column("TIME", "seconds"),
    column("WHY", "text", fit=Fit.REST),
)
_RUNS = (
    column("PLANNED", "planned", fit=Fit.WHOLE),
    column("OUTCOME", "outcome", fit=Fit.WHOLE),
    column("CODE", "error_code", fit=Fit.WHOLE),
    duration_column("LATE", "late_seconds", spare=2),
    duration_column("TOOK", "took_seconds"),
    column("SLOWEST", "slowest", fit=Fit.WHOLE),
    duration_column("FOR", "slowest_seconds"),
    column("WORKER", "runner", fit=Fit.WHOLE, spare=1),
    replace(column("MESSAGE", "message", fit=Fit.REST), wraps=True),
)
_WORKERS = (
    column("WORKER", "worker", fit=Fit.WHOLE),
    Column("MAY TAKE IT", _may_take, fit=Fit.WHOLE),
    column("WHY", "reason", fit=Fit.REST),
)


def command(word: TargetWord, as_json: Json = False) -> None:
    """Explain why targets are polled, late, failing or left alone.

    DEVICE alone explains each of its targets, the worst first.
    """
    from poller.service import target_explanation

    device, target = split_target(word)
    services = bootstrap.services()
    with suppress(errors.StoreUnavailable):  # the explanation says so, and what Redis knows
        database(services)
    found = target_explanation.explain_device(services, device, target)
    if not found:
        raise no_target(device)

    if target:
        _print_one(found[0], as_json)
    else:
        _print_all(found, as_json)
    raise typer.Exit(exit_code(found))


def exit_code(found: Sequence[Explanation]) -> int:
    """5 while a store is away, 1 if something is wrong with a target, else 0."""
    if any(each.cause.is_store for each in found):
        return errors.StoreUnavailable.exit_code
    return 1 if any(each.cause.is_bad for each in found) else os.EX_OK


def _print_all(found: Sequence[Explanation], as_json: bool) -> None:
    if as_json:
        items = [why_json.item(each).model_dump() for each in found]
        render.document(why_types.LIST_SCHEMA, {"items": items})
        return
    if len(found) == 1:
        _print_one(found[0], as_json=False)
        return
    for each in found:
        render.paragraph(f"{each.facts.name}: {each.sentence}")
    shown = {alert.id: alert for each in found for alert in each.facts.alerts}
    for alert in shown.values():
        render.paragraph(alert_sentences.sentence(alert, found[0].facts.now_ms))
    worst = found[0].facts.name
    render.note(f"all details of one target: poller why {worst}")


def _print_one(found: Explanation, as_json: bool) -> None:
    body = why_json.document(found).model_dump(by_alias=True)
    if as_json:
        render.document(why_types.SCHEMA, body)
        return
    render.paragraph(f"{found.facts.name}: {found.sentence}")
    for sentence in found.also:
        render.paragraph(f"also: {sentence}")
    for alert in body["alerts"]:
        render.paragraph(alert["sentence"])
    if found.hint:
        render.echo(f"try: {found.hint}")
    _print_details(body)


def _print_details(body: Mapping[str, Any]) -> None:
    """The named parts, each under its title; parts that are unknown are left out."""
    _print_record("on the board", body["board"])
    _print_list("next due time", body["schedule"]["steps"], _STEPS, body["schedule"]["rule"])
    _print_record("last poll", body["status"])
    _print_record("breaker", body["breaker"])
    _print_record("dead letter", body["dead_letter"])
    if body["site"]["name"]:
        _print_record("site", _site(body["site"]))
    _print_list("last runs", body["runs"], _RUNS)
    _print_list("workers", body["workers"], _WORKERS)
    if body["collector"]:
        credential = body["credential"]
        named = f"{credential['name']} (of the {credential['of']})" if credential else ""
        fields = {"collector": body["collector"], "credential": named, "options": body["options"]}
        _print_record("polled with", fields)


def _site(site: Mapping[str, Any]) -> dict[str, Any]:
    """The site in plain words."""
    sample = " of a sample" if site["is_sample"] else ""
    polled = f"{site['neighbours_answering']:,} of {site['neighbours']:,}{sample} answer"
    return {
        "name": site["name"],
        "dark": f"since {site['dark_since']}" if site["is_dark"] else "no",
        "canaries": site["canaries"],
        "neighbours": polled if site["neighbours"] else "none polled",
    }


def _print_record(title: str, fields: Mapping[str, Any] | None) -> None:
    known = {name: value for name, value in (fields or {}).items() if _is_known(value)}
    if known:
        render.echo(f"\n{title}")
        render.record(title, known, as_json=False)


def _print_list(
    title: str, items: Sequence[Item], columns: Sequence[Column], remark: str = ""
) -> None:
    if items:
        render.echo(f"\n{title}: {remark}" if remark else f"\n{title}")
        render.listing(title, items, columns, as_json=False)


def _is_known(value: object) -> bool:
    """Whether a value says something; 0 and no do."""
    return value is not None and value != "" and value != [] and value != {}
