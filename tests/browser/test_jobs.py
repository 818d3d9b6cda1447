"""The pages of jobs: their links, both themes, narrow screens, and without scripts."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
import web_jobs
from playwright.sync_api import expect

BACKGROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 19, 24)"}
PAGES = {"jobs": "Jobs", "jobs/broken": "broken"}


def test_the_overview_links_to_the_jobs(site, open_page) -> None:
    """A job links to its own page, and that back to the jobs and the overview."""
    page = open_page()
    page.get_by_role("link", name="Jobs", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    listed = page.locator('[data-table="jobs"]')
    expect(listed.get_by_role("row", name="late")).to_contain_text("overdue")
    listed.get_by_role("link", name="broken", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("broken")
    expect(page.locator(".error")).to_contain_text("no route")
    page.get_by_role("link", name="Jobs", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    page.get_by_role("link", name="poller", exact=True).click()
    expect(page.locator("#live")).to_have_text("● live")


@pytest.mark.parametrize("theme", BACKGROUNDS)
@pytest.mark.parametrize("width", [320, 720, 1280])
@pytest.mark.parametrize("path", PAGES)
def test_the_pages_fit_every_width_in_both_themes(
    site, open_page, tmp_path: Path, theme: str, width: int, path: str
) -> None:
    """Without scripts, and without scrolling sideways, also with the longest names."""
    longest = dataclasses.replace(web_jobs.named("late"), job=web_jobs.job("x" * 100))
    site.jobs = dataclasses.replace(site.jobs, jobs=[*site.jobs.jobs, longest])
    page = open_page(java_script_enabled=False, viewport={"width": width, "height": 800})
    page.goto(f"{site.url}{path}?theme={theme}")
    expect(page.locator("body")).to_have_css("background-color", BACKGROUNDS[theme])
    expect(page.get_by_role("heading", level=1)).to_have_text(PAGES[path])
    directory = Path(os.environ.get("SCREENSHOTS_TO", tmp_path))
    name = f"{path.replace('/', '-')}-{theme}-{width}.png"
    assert page.screenshot(path=directory / name, full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_names_stay_on_one_line(site, open_page) -> None:
    """A long error is wrapped; the name of its job is not."""
    page = open_page()
    page.goto(f"{site.url}jobs")
    names = page.locator('[data-table="jobs"] tbody .name a')
    heights = {name.evaluate("e => e.getClientRects().length") for name in names.all()}
    assert heights == {1}
