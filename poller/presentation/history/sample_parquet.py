"""Exported samples as a Parquet file, in row groups of bounded size. Needs the extra `parquet`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poller import errors

if TYPE_CHECKING:
    from poller.domain.series.exported_polls import ExportedPolls

#: Rows of a row group, about. They are in memory until they are written.
ROWS = 200_000


def write(path: Path, found: Iterable[ExportedPolls]) -> int:
    """Write a file and return the number of its rows. Raises ConfigError without pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise errors.ConfigError(
            "Parquet files need pyarrow, which is not installed",
            hint="pip install 'poller[parquet]', or --format csv",
        ) from None
    schema = pa.schema(
        [
            ("time", pa.timestamp("ms", tz="UTC")),
            ("device", pa.string()),
            ("target", pa.string()),
            ("metric", pa.string()),
            ("labels", pa.map_(pa.string(), pa.string())),
            ("value", pa.float64()),
            ("kind", pa.string()),
        ]
    )
    rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        waiting: list[Any] = []
        waiting_rows = 0
        for polls in found:
            waiting.append(_table(pa, schema, polls))
            waiting_rows += polls.samples
            rows += polls.samples
            if waiting_rows >= ROWS:
                writer.write_table(pa.concat_tables(waiting))
                waiting, waiting_rows = [], 0
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
    return rows


def _table(pa: Any, schema: Any, polls: ExportedPolls) -> Any:
    """Return the rows of some polls: every column of names is taken from one entry a series."""
    import numpy as np

    count, series = len(polls.at_ms), len(polls.series)
    place = np.tile(np.arange(series), count)
    labels = pa.array([list(each.labels) for each in polls.series], schema.field("labels").type)
    columns = [
        pa.array(np.repeat(np.array(polls.at_ms, "datetime64[ms]"), series)).cast(
            schema.field("time").type
        ),
        pa.repeat(polls.device, count * series),
        pa.repeat(polls.target, count * series),
        pa.array([each.name for each in polls.series]).take(pa.array(place)),
        labels.take(pa.array(place)),
        pa.array(np.array(polls.values, np.float64).ravel()),
        pa.array([each.kind.value for each in polls.series]).take(pa.array(place)),
    ]
    return pa.Table.from_arrays(columns, schema=schema)
