"""The options of a sink about labels."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from poller.sinks.label_options import LabelOptions


def test_facts_of_a_target_can_be_named_or_left_out() -> None:
    """Facts that no option names keep their own names."""
    options = LabelOptions(labels={"env": "lab"}, label_names={"device": "instance", "site": ""})
    assert options.names.device == "instance"
    assert options.names.site == ""
    assert options.names.collector == "collector"
    assert options.fixed == (("env", "lab"),)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"label_names": {"host": "instance"}}, 'label_names: "host" is none of device, site'),
        ({"label_names": {"device": "1st"}}, "no name of a label"),
        ({"label_names": {"device": "site"}}, "the same name"),
        ({"labels": {"device": "x"}}, "the same name"),
        ({"labels": {"tag_role": "x"}}, "are those of tags .choose other names"),
    ],
)
def test_names_that_collide_are_refused(options: dict[str, Any], text: str) -> None:
    """A collision is said at start, not found in the store."""
    with pytest.raises(pydantic.ValidationError, match=text):
        LabelOptions(**options)
