"""The colours of the style sheet: only variables, each with enough contrast on each background."""

from __future__ import annotations

import itertools
import math
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
STATES = ["ok", "late", "failing", "unknown"]
#: What an eye without one kind of cone makes of linear red, green and blue
#: (Machado, Oliveira and Fernandes, 2009, severity 1.0).
EYES = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no green": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no blue": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
#: The least distance of two colours in OKLab, times 100. Usual green and red have 3.5.
APART = 10


def linear(colour: str) -> list[float]:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def seen(colour: str, eye: str) -> tuple[float, float, float]:
    """The place in OKLab of a colour as this eye sees it."""
    channels = linear(colour)
    parts = [sum(a * b for a, b in zip(row, channels, strict=True)) for row in EYES[eye]]
    red, green, blue = (min(max(part, 0.0), 1.0) for part in parts)
    long = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    middle = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


def distance(one: str, other: str, eye: str) -> float:
    return 100 * math.dist(seen(one, eye), seen(other, eye))


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


def test_the_distance_is_that_of_the_usual_traffic_light() -> None:
    """The green and the red of many pages are nearly one colour to an eye without green cones."""
    assert distance("#000000", "#ffffff", "all cones") == pytest.approx(100, abs=0.1)
    assert distance("#28a745", "#dc3545", "no green") == pytest.approx(3.5, abs=0.2)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("names", [STATES, LINES], ids=["states", "lines"])
def test_colours_stay_apart_for_every_eye(names: list[str], eye: str, theme: str) -> None:
    """States and lines are told apart by colour, besides glyph, word, height and dash."""
    colours = [TOKENS[name][theme] for name in names]
    nearest = min(distance(*pair, eye) for pair in itertools.combinations(colours, 2))
    assert nearest >= APART


def test_every_colour_is_a_variable() -> None:
    """A colour outside the variables would escape the contrast test."""
    rest = TOKEN.sub("", CSS)
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(", rest)


def test_the_style_sheet_fetches_nothing() -> None:
    """There is no import, font or image."""
    assert "url(" not in CSS
    assert "@import" not in CSS
