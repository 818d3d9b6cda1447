"""The picture at the end of a run: a panel per section, drawn from the result files.

`python -m benchmarks.plot [FOLDER]` draws the picture again from the files of earlier runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import panels
from benchmarks.stage import ROOT

NAME = "bench.png"
WIDTH, HEIGHT = 7.0, 4.2  # of a panel, in inches

Document = Mapping[str, Any]


def draw(folder: Path, documents: Sequence[Document]) -> str:
    """Write the picture of these sections, and print its path or why there is none."""
    by_section = {one["section"]: one for one in documents}
    wanted = [
        (panel, by_section[name])
        for name, own in panels.OF.items()
        if name in by_section
        for panel in own
    ]
    if not wanted:
        return "no picture: these sections have none"
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "no picture: matplotlib is not installed (make setup)"
    columns = min(2, len(wanted))
    rows = -(-len(wanted) // columns)
    figure = Figure(figsize=(WIDTH * columns, HEIGHT * rows + 0.4), layout="constrained")
    figure.suptitle(_title([one for _, one in wanted]), fontsize=9, color=panels.MUTED)
    for number, (panel, document) in enumerate(wanted, 1):
        panel(figure.add_subplot(rows, columns, number), document)
    figure.savefig(folder / NAME, dpi=110)
    return f"picture written to {NAME}"


def _title(documents: Sequence[Document]) -> str:
    machine, sizes = documents[0]["machine"], sorted({one["size"] for one in documents})
    commits = sorted({one["machine"]["commit"] for one in documents})
    where = f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gb']} GB"
    return f"poller {', '.join(commits)}; {', '.join(sizes)} size; {where}; {machine['at']}"


def _again(folder: Path) -> str:
    files = sorted(folder.glob("*.json"))
    documents = [json.loads(path.read_text()) for path in files]
    return draw(folder, documents)


if __name__ == "__main__":
    print(_again(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "benchmarks" / "results"))
