"""Every page of a running demo: no finding of axe, nothing wider than the window, no error.

The same pages are the pictures in docs/images: `make screenshots` sets SCREENSHOTS_TO.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from tests.acceptance.programs import Up, eventually
from tests.browser import page_walk

pytestmark = pytest.mark.timeout(1200)

WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
#: The widest and the narrowest window that the pages promise to fit.
WIDTHS = (320, 390, 3840)
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
#: Colours of a picture: few are enough for a page, and a picture stays small.
COLOURS = 64


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A demo with some polls behind it. For pictures it has the size and the time of a tour."""
    devices = "200" if _pictures() else "40"
    # Settings show the directory, so that of the pictures has a name that fits any machine.
    home = Path("/tmp/poller/.poller") if _pictures() else tmp_path_factory.mktemp("demo") / "home"
    home.parent.mkdir(exist_ok=True)
    running = Up(home, "--demo", "--devices", devices, "--workers", "1", "--sink", "stream")
    try:
        eventually(lambda: running.polls() >= (700 if _pictures() else 30), 900, "some polls")
        yield running
    finally:
        running.stop(within_s=30)


@pytest.fixture(scope="module")
def address(demo: Up) -> str:
    found = re.search(r"http://127\.0\.0\.1:\d+", demo.text())
    assert found
    return found[0]


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport=WIDE)
    yield made
    made.close()


@pytest.fixture(scope="module")
def pages(context: BrowserContext, address: str) -> dict[str, str]:
    """The path of one page of each kind."""
    page = context.new_page()
    found = page_walk.every_page(page, address)
    page.close()
    return found


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page that must not say an error on its console."""
    errors: list[str] = []
    made = context.new_page()
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.on("console", lambda line: errors.append(_text(line)) if line.type == "error" else None)
    yield made
    made.close()
    assert errors == []


def test_axe_finds_nothing_in_any_page(page: Page, pages: dict[str, str], address: str) -> None:
    """All rules of WCAG 2.2 AA and of good practice, and contrast once more in the dark."""
    found: dict[str, list[str]] = {}
    for kind, path in pages.items():
        page.emulate_media(color_scheme="light")
        page.goto(address + path)
        findings = _findings(page, {"type": "tag", "values": RULES})
        page.emulate_media(color_scheme="dark")
        findings += _findings(page, {"type": "rule", "values": ["color-contrast"]})
        if findings:
            found[kind] = findings
    assert found == {}


def test_no_page_is_wider_than_the_window(page: Page, pages: dict[str, str], address: str) -> None:
    """From a telephone to the largest screen; what is wide scrolls in its own box."""
    too_wide = []
    for kind, path in pages.items():
        page.goto(address + path)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                too_wide.append(f"{kind} at {width}")
        page.set_viewport_size(WIDE)
    assert too_wide == []


def test_every_page_has_one_heading_and_a_title_of_its_own(
    page: Page, pages: dict[str, str], address: str
) -> None:
    """Two tabs of one browser can be told apart."""
    titles = []
    for path in pages.values():
        page.goto(address + path)
        titles.append(re.sub(r"^\(\d+\) ", "", page.title()))
        assert page.locator("h1").count() == 1, path
    assert sorted(titles) == sorted(set(titles))


def test_the_keyboard_reaches_what_the_pointer_reaches(
    page: Page, pages: dict[str, str], address: str
) -> None:
    """Tab moves through links, fields and buttons, and each one that has the focus shows it."""
    unseen = []
    for kind, path in pages.items():
        page.goto(address + path)
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate(_FOCUS_IS_UNSEEN):
                unseen.append(f"{kind}: {page.evaluate('document.activeElement.outerHTML')[:80]}")
    assert unseen == []


def test_pictures_of_every_page(page: Page, pages: dict[str, str], address: str) -> None:
    """Light, dark and narrow; kept only where SCREENSHOTS_TO says."""
    directory = _pictures()
    if not directory:
        pytest.skip("SCREENSHOTS_TO names no directory")
    failing = page_walk.first_device(page, address, "state:failing")
    shown = {**pages, "failing device": failing}
    shown["/devices/NAME/plots"] += "&range=1h"  # no more is known yet
    for kind, path in shown.items():
        page.goto(address + path)
        page.wait_for_timeout(500)
        for name, scheme, size in (
            ("light", "light", WIDE),
            ("dark", "dark", WIDE),
            ("narrow", "light", PHONE),
        ):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size(size)  # type: ignore[arg-type]
            page.wait_for_timeout(300)  # plots are drawn again
            _keep(page.screenshot(), directory / f"{_slug(kind)}-{name}.png")


def _text(line: ConsoleMessage) -> str:
    return f"{line.text} {line.location}"


#: An element with the focus that is neither outlined nor the start of the page.
_FOCUS_IS_UNSEEN = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) return false;
  const style = getComputedStyle(element);
  return style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2;
}"""


def _findings(page: Page, only: dict[str, Any]) -> list[str]:
    """Return each finding as a rule and the element that broke it."""
    answer = Axe().run(page, options={"runOnly": only}).response
    return [
        f"{finding['id']}: {node['html'][:160]}"
        for finding in answer["violations"]
        for node in finding["nodes"]
    ]


def _pictures() -> Path | None:
    named = os.environ.get("SCREENSHOTS_TO")
    return Path(named).resolve() if named else None


def _slug(kind: str) -> str:
    words = re.sub(r"[^a-z]+", "-", kind.lower()).strip("-")
    return words or "overview"


def _keep(png: bytes, path: Path) -> None:
    """Write a picture with few colours."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
