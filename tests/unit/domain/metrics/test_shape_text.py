"""The shape of a poll: its text is canonical, so that its id is the same in every process and every release."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.metrics.reading import Kind, Series, SeriesSet

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ROWS = st.dictionaries(TEXTS, TEXTS, max_size=4).map(lambda labels: tuple(sorted(labels.items())))
SETS = st.lists(
    st.builds(Series, TEXTS, ROWS, st.sampled_from(Kind), st.sampled_from([0, 32, 64])), max_size=8
).map(lambda all_: SeriesSet(tuple(all_)))


@given(SETS)
def test_the_text_is_plain_json_and_comes_back_as_it_was(shape: SeriesSet) -> None:
    """What is stored can be read by any program, and by us."""
    rows = [
        [s.name, dict(s.labels), s.kind.value, *([s.width] if s.width else [])]
        for s in shape.series
    ]
    assert shape.to_json() == json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    assert SeriesSet.from_json(shape.to_json()) == shape


def test_an_id_stays_what_it_was() -> None:
    """Stored readings refer to it."""
    row = (("ifIndex", "1"), ("ifName", "gö/1"))
    assert (
        SeriesSet((Series("ifInOctets", row, Kind.COUNTER), Series("up", (), Kind.GAUGE))).id
        == 4437678243373302520
    )
