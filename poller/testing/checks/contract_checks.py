"""Checks that need no device: the collector's class and its options."""

from __future__ import annotations

import json
from typing import Any

import pydantic

from poller import errors
from poller.collectors import admission
from poller.testing.subject import Failed, Inapplicable, Subject

_NOT_AN_OPTION = "no_such_option_at_all"


async def contract(subject: Subject) -> None:
    """The registry accepts the collector: name, API version, `collect`, credentials, abilities."""
    try:
        collector: Any = subject.make()
        admission.admit(collector, collector.name)
    except errors.ConfigError as error:
        refusal = f"the registry would not load it: {error}. {error.hint}"
        raise Failed(refusal.rstrip(". ")) from None
    except Exception as error:  # the door to a plugin's class
        raise Failed(f"the registry would not load it: {type(error).__name__}: {error}") from error


async def options_described(subject: Subject) -> None:
    """Every option has a description, and the model has a JSON schema: both are shown to users."""
    model = subject.make().Options
    bare = [name for name, field in model.model_fields.items() if not field.description]
    if bare:
        raise Failed(
            f"nothing says what {' and '.join(bare)} means: "
            f'write {bare[0]}: Annotated[..., Field(description="...")]'
        )
    try:
        json.dumps(model.model_json_schema())
    except Exception as error:  # the door to a plugin's model
        raise Failed(f"its options have no JSON schema: {type(error).__name__}: {error}") from error


async def options_stored(subject: Subject) -> None:
    """Options and their defaults can be stored as JSON and validated again by a worker."""
    options = subject.checked()
    try:
        stored = json.loads(json.dumps(options.model_dump(mode="json")))
    except Exception as error:  # the door to a plugin's model
        cause = f"{type(error).__name__}: {error}"
        raise Failed(f"its options cannot be stored as JSON: {cause}") from error
    try:
        again = type(options).model_validate(stored)
    except pydantic.ValidationError as error:
        item = error.errors(include_url=False)[0]
        name = ".".join(map(str, item["loc"])) or "the whole model"
        raise Failed(
            f"its own model refuses the stored value of {name}: {item['msg']}. "
            "A default must be a valid value"
        ) from None
    if again != options:
        changed = [
            name
            for name in type(options).model_fields
            if getattr(again, name) != getattr(options, name)
        ]
        raise Failed(f"{' and '.join(changed)} had another value after being stored and read")


async def unknown_option(subject: Subject) -> None:
    """A misspelt option is refused."""
    model = subject.make().Options
    if not model.model_fields and model.model_config.get("extra") == "forbid":
        raise Inapplicable("it has no options")
    try:
        model.model_validate({**subject.options, **subject.device.options, _NOT_AN_OPTION: 1})
    except pydantic.ValidationError:
        return
    raise Failed(
        "an option that does not exist is accepted: "
        "derive Options from api.Options, and do not change `extra`"
    )
