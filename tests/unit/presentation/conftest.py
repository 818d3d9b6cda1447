"""The overviews of the web tests, for the tests of the health sentences."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))
