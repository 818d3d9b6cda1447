"""`python -m benchmarks [--quick] [--size small] [SECTION...]`, run by `make bench`.

The exit code is 1 if a goal was missed.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any

from benchmarks import machine, plot, report, section
from benchmarks.section import Findings
from benchmarks.stage import ROOT, stage
from poller import errors

#: The sections that together take two minutes.
QUICK_SIZE, QUICK_SECTIONS = "small", ["cost", "blackhole", "killed"]


def main() -> int:
    options = _options()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Raise KeyboardInterrupt, so that all processes are removed, also when started with `&`.
        signal.signal(number, signal.default_int_handler)
    try:
        return _run_all(options)
    except errors.PollerError as error:
        print(
            f"error[{error.code}]: {error}" + (f"\n  try: {error.hint}" if error.hint else ""),
            file=sys.stderr,
        )
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure poller on this machine."
    )
    named = ", ".join(f"{name} ({one.asks})" for name, one in section.known().items())
    parser.add_argument("sections", nargs="*", help=f"all without a name: {named}")
    parser.add_argument(
        "--size", default="full", help="full, small (a minute) or tiny (to see that it works)"
    )
    quick = f"the same as --size {QUICK_SIZE} {' '.join(QUICK_SECTIONS)}: two minutes"
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument(
        "--results", type=Path, default=ROOT / "benchmarks" / "results", help="where the files go"
    )
    options = parser.parse_args()
    if options.quick:
        options.size, options.sections = QUICK_SIZE, options.sections or QUICK_SECTIONS
    return options


def _run_all(options: argparse.Namespace) -> int:
    chosen = section.chosen(options.sections, options.size)
    results: Path = options.results.absolute()
    found: dict[str, Findings] = {}
    documents: list[dict[str, Any]] = []
    for name, one in chosen.items():
        found[name], document = _run(name, one, options.size, results)
        documents.append(document)
    report.summary(found)
    message = plot.draw(results, documents)
    print(f"\n{_shown(results)}: {message}", file=sys.stderr)
    return (
        0 if all(figure.met is not False for one in found.values() for figure in one.figures) else 1
    )


def _run(
    name: str, one: section.Section, size: str, results: Path
) -> tuple[Findings, dict[str, Any]]:
    print(f"== {name}: {one.asks}", file=sys.stderr, flush=True)
    where = machine.described()
    with stage() as its_own:
        findings = one.run(one.sizes[size], its_own)
    report.show(name, size, findings, where)
    document = report.document(name, size, findings, where)
    print(f"\nwritten to {_shown(report.save(results, document))}", file=sys.stderr)
    return findings, document


def _shown(path: Path) -> str:
    """Return a path as a user would type it in this directory."""
    return os.path.relpath(path)


if __name__ == "__main__":
    sys.exit(main())
