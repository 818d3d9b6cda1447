"""Checks of a target against its collector: options, credential, default schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.collectors import api
from poller.db.inventory import credential_rows, lookup
from poller.domain.inventory import draft
from poller.domain.inventory.draft import TargetDraft
from poller.domain.scheduling.schedule import Defaults
from poller.service.inventory import option_secrets, option_texts
from poller.service.inventory_forms import value_limits
from poller.settings import policies

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.collectors.api import Options
    from poller.collectors.registry import Registry


def stored_options(
    registry: Registry,
    collector: str,
    raw: Mapping[str, Any],
    new: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return options in their stored form, checked by the collector.

    `new` are those that are not stored yet; None: all. A text for a list or a mapping is converted.
    Raises InvalidInput, naming the option, and UnknownCollector.
    """
    model = options_model(registry, collector)
    unusable = value_limits.objection(dict(raw))
    if unusable:
        raise errors.InvalidInput(f"options: {unusable}", field="options")
    option_secrets.refuse(registry.get(collector), raw if new is None else new)
    texts = {name: value for name, value in raw.items() if isinstance(value, str)}
    typed = option_texts.typed(model, texts)
    checked = registry.checked_options(collector, {**raw, **typed})
    return checked.model_dump(mode="json", exclude_unset=True)


def options_model(registry: Registry, collector: str) -> type[Options]:
    """Return the collector's options model. Raises UnknownCollector."""
    try:
        return registry.get(collector).Options
    except errors.InvalidInput as error:
        raise draft.UnknownCollector(*error.args) from None


def merged_options(
    registry: Registry, collector: str, stored: Mapping[str, Any], changes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the stored options with the given ones set or, where they are None, removed.

    Raises InvalidInput, naming the option.
    """
    kept = {key: value for key, value in stored.items() if key not in changes}
    given = {key: value for key, value in changes.items() if value is not None}
    return stored_options(registry, collector, {**kept, **given}, given)


def needs_credential(registry: Registry, collector: str, options: Mapping[str, Any]) -> bool:
    """Return whether the collector needs a credential with these options."""
    return api.needs_credential(registry.get(collector), registry.options(collector, options))


def check_kind(registry: Registry, collector: str, credential: str, kind: str) -> None:
    """Raise InvalidInput unless the collector accepts a credential of that kind."""
    accepted = [model.kind for model in registry.get(collector).credentials]
    if accepted and kind not in accepted:
        raise errors.InvalidInput(
            f'collector {collector} cannot use credential "{credential}" of kind {kind}',
            hint="it takes " + ", ".join(accepted),
            field="credential",
        )


def check_credential(services: Services, credential: str | None, collector: str) -> None:
    """Raise InvalidInput if the collector cannot use a credential, UnknownName if none has it."""
    if credential:
        kind = known_kind(services, credential)
        check_kind(services.registry, collector, credential, kind)


def known_kind(services: Services, credential: str) -> str:
    """Return the kind of the credential that a device or target names. Raises UnknownName."""
    with lookup.unknown_name("credential"):
        return credential_rows.kind(services.engine, credential)


def defaults_of(services: Services, collector: str | None) -> Defaults:
    """Return the schedule of a target of this collector where no value is given.

    Raises InvalidInput if the collector declares an unknown staleness source.
    """
    declared = services.registry.schedule(collector or "")
    if declared.staleness is not None:
        services.staleness.check(declared.staleness)
    return Defaults(declared, policies.adaptive_interval(services.settings))


def new_target(
    services: Services, fields: Mapping[str, Any], credentials: Sequence[str | None]
) -> tuple[TargetDraft, list[str]]:
    """Return a checked new target, and notes. `credentials` are its own or those of its devices.

    Raises InvalidInput. A needed credential that is missing is only noted: it may be added later.
    """
    registry = services.registry
    collector = fields.get("collector")
    if isinstance(collector, str):
        registry.get(collector)  # raises CollectorMissing
    target, problems = draft.target(
        fields,
        partial(stored_options, registry),
        services.staleness.check,
        partial(defaults_of, services),
    )
    draft.raise_first(problems)
    if target.collector is None:
        hint = "for example snmp"
        raise errors.InvalidInput("the collector is missing", hint=hint, field="collector")

    needed = needs_credential(registry, target.collector, target.options or {})
    for credential in credentials:
        if credential and (needed or target.credential):
            check_credential(services, credential, target.collector)
    notes = cautions(registry, target.collector, target.options or {})
    if needed and not all(credentials):
        notes.append(_credential_note(registry, target.collector, len(credentials)))
    return target, notes


def cautions(registry: Registry, collector: str, options: Mapping[str, Any]) -> list[str]:
    """Return what the collector finds risky about valid options."""
    return api.cautions(registry.get(collector), registry.options(collector, options))


def _credential_note(registry: Registry, collector: str, users: int) -> str:
    kinds = " or ".join(model.kind for model in registry.get(collector).credentials)
    which = "this target has" if users == 1 else "some of these devices have"
    return f"{collector} needs a credential ({kinds}), and {which} none yet"


def target_changes(
    services: Services,
    fields: Mapping[str, Any],
    options: Mapping[str, Any] | None,
    collector: str,
    stored: Mapping[str, Any],
) -> TargetDraft:
    """Return the checked changes of a target with this collector and these stored options.

    `options` are set or, where they are None, removed; others stay. Raises InvalidInput.
    """
    registry = services.registry
    merged = None
    if options is not None:
        merged = merged_options(registry, collector, stored, options)
    target, problems = draft.target(
        {**fields, "options": merged},
        _already_checked,
        services.staleness.check,
        _always(defaults_of(services, collector)),
    )
    draft.raise_first(problems)
    return target


def _always(defaults: Defaults) -> Callable[[str | None], Defaults]:
    def same(_collector: str | None) -> Defaults:
        return defaults

    return same


def _already_checked(_collector: str, options: Any) -> Any:
    return options
