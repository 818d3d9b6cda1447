"""The colours of the style sheet: only variables, each with enough contrast on each background."""

from __future__ import annotations

import re

import pytest

from poller.web import assets

CSS = assets.load().by_name["style.css"].body.decode()
TOKEN = re.compile(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);")
TOKENS = {name: {"light": light, "dark": dark} for name, light, dark in TOKEN.findall(CSS)}
#: WCAG 2.2: 4.5 for text, 3 for the edge of a control.
MINIMUM = dict.fromkeys(("ink", "muted", "link", "ok", "late", "failing", "unknown"), 4.5) | {
    "border": 3.0
}
#: Lines of plots are no text, and they lie on the surface of a figure.
LINES = [name for name in TOKENS if name.startswith("line-")]


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_formula_is_right() -> None:
    """Black on white is 21, and the text colour reaches 16.5."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast(TOKENS["ink"]["light"], TOKENS["ground"]["light"]) == pytest.approx(
        16.5, abs=0.1
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["ground", "surface", "hover"])
@pytest.mark.parametrize("name", MINIMUM)
def test_every_colour_is_readable_on_every_background(name: str, ground: str, theme: str) -> None:
    """In both themes, and on the row under the pointer."""
    assert contrast(TOKENS[name][theme], TOKENS[ground][theme]) >= MINIMUM[name]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", LINES)
def test_every_line_of_a_plot_is_seen(name: str, theme: str) -> None:
    """WCAG 2.2 asks for 3 for graphics."""
    assert len(LINES) == 6
    assert contrast(TOKENS[name][theme], TOKENS["surface"][theme]) >= 3


def test_every_colour_is_a_variable() -> None:
    """A colour outside the variables would escape the contrast test."""
    rest = TOKEN.sub("", CSS)
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(", rest)


def test_the_style_sheet_fetches_nothing() -> None:
    """There is no import, font or image."""
    assert "url(" not in CSS
    assert "@import" not in CSS
