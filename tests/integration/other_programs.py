"""RouterOS-api from a separate environment, because it installs a top-level package named
`tests`.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from tests.conftest import missing

CLIENTS = Path(sys.prefix) / "clients"


def routeros_api() -> ModuleType:
    """The module RouterOS-api, without the other packages of its environment."""
    found = [str(path.parent) for path in CLIENTS.glob("lib/python*/site-packages/routeros_api")]
    if not found:
        missing("RouterOS-api is not installed: make clients")
    sys.path += found
    try:
        return importlib.import_module("routeros_api")
    finally:
        sys.path.remove(found[0])
