"""The pictures in docs/images. To renew them:
SCREENSHOTS_TO=docs/images pytest tests/browser/test_screenshots.py
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import web_overviews as fleet
from playwright.sync_api import expect

PICTURES = {
    "overview-light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "overview-dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "overview-narrow": {"color_scheme": "light", "viewport": {"width": 320, "height": 1400}},
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_smaller_than_400_kilobytes(
    site, open_page, tmp_path: Path, name: str
) -> None:
    """The page of a failing fleet, as the documentation shows it."""
    site.overview = fleet.FAILING
    page = open_page(**PICTURES[name])
    expect(page.locator("#live")).to_have_text("● live")
    directory = Path(os.environ.get("SCREENSHOTS_TO", tmp_path))
    picture = page.screenshot(path=directory / f"{name}.png", full_page=name != "overview-narrow")
    assert 10_000 < len(picture) < 400_000
