"""`python -m benchmarks [--size small] [SECTION...]`: what `make bench` runs. Exit code 1: a goal was missed."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from benchmarks import machine, report, section
from benchmarks.stage import ROOT, stage
from poller import errors


def main() -> int:
    options = _options()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)  # nothing stays behind, also when started with `&`
    try:
        sections = section.chosen(options.sections, options.size)
        met = [_run(name, one, options.size, options.results.absolute()) for name, one in sections.items()]
    except errors.PollerError as error:
        print(f"error[{error.code}]: {error}" + (f"\n  try: {error.hint}" if error.hint else ""), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0 if all(met) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure poller on this machine.")
    named = ", ".join(f"{name} ({one.asks})" for name, one in section.known().items())
    parser.add_argument("sections", nargs="*", help=f"all without a name: {named}")
    parser.add_argument("--size", default="full", help="full, small (a minute) or tiny (to see that it works)")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results", help="where the files go")
    return parser.parse_args()


def _run(name: str, one: section.Section, size: str, results: Path) -> bool:
    """Returns whether every goal was reached."""
    print(f"== {name}: {one.asks}", file=sys.stderr, flush=True)
    where = machine.described()
    with stage() as its_own:
        findings = one.run(one.sizes[size], its_own)
    report.show(name, size, findings, where)
    print(f"\nwritten to {report.save(results, name, size, findings, where).name}", file=sys.stderr)
    return all(figure.met is not False for figure in findings.figures)


if __name__ == "__main__":
    sys.exit(main())
