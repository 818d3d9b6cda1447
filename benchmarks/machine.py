"""The machine of a benchmark run."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.stage import ROOT
from poller.settings import Settings
from poller.settings.setting_sources import SECRETS


def described() -> dict[str, Any]:
    """Return the size and load of this machine and the versions of the software; no host name."""
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(pages * page / 2**30, 1),
        "cpu": _cpu(),
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
        "commit": _commit(),
        "settings": _settings(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _settings() -> dict[str, str]:
    """Return the settings from the environment, without paths and secrets."""
    hidden = {f"POLLER_{name.upper()}" for name in ("home", *SECRETS)}
    shown = {f"POLLER_{name.upper()}" for name in Settings.model_fields} - hidden
    return {name: os.environ[name] for name in sorted(shown) if name in os.environ}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> str:
    """Return the git commit, with `+` if files differ; empty outside of a checkout."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        return ""
