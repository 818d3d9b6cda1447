"""Options of sinks whose stores know labels: fixed labels, and names of the target's facts."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from poller.domain.metrics.outside_labels import LabelNames
from poller.domain.metrics.reading import Labels

_ADVICE = 'choose other names; label_names has those of facts, and "" leaves one out'
_FACTS = tuple(field.name for field in fields(LabelNames))


class LabelOptions(BaseModel):
    """Options about the labels that a series has in the store beside its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    labels: dict[str, str] = Field(
        default_factory=dict, description='Labels of every series: {env = "lab"}.'
    )
    label_names: dict[str, str] = Field(
        default_factory=dict,
        description="Names in the store for device, site, target, collector, address, tag and the "
        'prefix tag_prefix; "" leaves one out: {device = "instance", address = "address"}.',
    )

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for fact in self.label_names:
            if fact not in _FACTS:
                raise ValueError(f'label_names: "{fact}" is none of {", ".join(_FACTS)}')
        faults = self.names.faults(self.fixed)
        if faults:
            raise ValueError(f"{'; '.join(faults)} ({_ADVICE})")
        return self

    @cached_property
    def names(self) -> LabelNames:
        return LabelNames(**self.label_names)

    @cached_property
    def fixed(self) -> Labels:
        return tuple(sorted(self.labels.items()))
