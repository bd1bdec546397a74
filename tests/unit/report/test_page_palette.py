"""Contrast of all colours of the page and of the figures, in the light and in the dark (WCAG: text 4.5, marks 3)."""

import re
from collections.abc import Iterator
from importlib.resources import files

import pytest
from matplotlib import colormaps, rcParams

from codechat.report import page
from codechat.report.drawing import COLOURS, LAST_SHADES, OTHERS, STYLE, shade, styled
from codechat.report.page import STYLES
from codechat.studies.multicodeif.chapter.drawings import LETTERS, LIGHT

TEXT, MARK = 4.5, 3.0
CSS = "\n".join(files(page).joinpath(name).read_text(encoding="utf-8") for name in STYLES)
PAIR = re.compile(r"light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
VARIABLES = {
    match[1]: match.groups()[1:] for match in re.finditer(rf"(--[\w-]+): {PAIR.pattern}", CSS) if match[1] != "--hue"
}
HUES = [match.groups() for match in re.finditer(rf"--hue: {PAIR.pattern}", CSS)]
GROUNDS = ("--ground", "--sheet", "--soft")
CHANGED = ("--good-soft", "--bad-soft")  # behind changed lines and chips
DECORATION = {"--rule", "--soft", "--ground", "--sheet", "--good-soft", "--bad-soft", "--band", "--shade"}
Colour = tuple[float, float, float]


def rgb(text: str) -> Colour:
    red, green, blue = (int(text[start : start + 2], 16) / 255 for start in (1, 3, 5))
    return red, green, blue


def luminance(colour: Colour) -> float:
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: Colour, other: Colour) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def turned_over(colour: Colour, sheet: Colour) -> Colour:
    """A figure's colour in the dark: `invert(1) hue-rotate(180deg)`, then blended as `screen` with the sheet."""
    red, green, blue = (1 - part for part in colour)
    rotated = (
        -0.574 * red + 1.43 * green + 0.144 * blue,
        0.426 * red + 0.43 * green + 0.144 * blue,
        0.426 * red + 1.43 * green - 0.856 * blue,
    )
    kept = (min(max(part, 0.0), 1.0) for part in rotated)
    found = tuple(1 - (1 - below) * (1 - part) for below, part in zip(sheet, kept, strict=True))
    return found[0], found[1], found[2]


def rules() -> Iterator[tuple[str, str]]:
    """The selectors and bodies of all rules."""
    for match in re.finditer(r"([^{}]+)\{([^{}]*)\}", re.sub(r"/\*.*?\*/", "", CSS, flags=re.DOTALL)):
        yield match[1].strip(), match[2]


def used(names: str) -> set[str]:
    """The variables that rules give to one of these properties."""
    found = re.findall(rf"(?<![\w-])(?:{names}):[^;}}]*?var\((--[\w-]+)\)", CSS)
    return {name for name in found if name in VARIABLES}


def test_the_stylesheet_is_read() -> None:
    assert {"--ink", "--quiet", "--good", "--bad", "--faint", "--sheet"} <= {*VARIABLES} and len(HUES) == 8


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_every_text_can_be_read(mode: int) -> None:
    texts = {name: VARIABLES[name] for name in used("color|fill") - DECORATION - {"--faint"}}
    assert {"--ink", "--quiet", "--link", "--good", "--bad"} <= {*texts}
    for name, pair in texts.items():
        for ground in GROUNDS:
            assert contrast(rgb(pair[mode]), rgb(VARIABLES[ground][mode])) >= TEXT, (name, ground)
    for name in ("--ink", "--quiet", "--good", "--bad"):
        for ground in CHANGED:
            assert contrast(rgb(VARIABLES[name][mode]), rgb(VARIABLES[ground][mode])) >= TEXT, (name, ground)
    for hue in HUES:  # names at the ends of lines
        assert contrast(rgb(hue[mode]), rgb(VARIABLES["--ground"][mode])) >= TEXT, hue
    for name in ("--good", "--bad"):  # chips and marks that are filled
        assert contrast(rgb(VARIABLES["--sheet"][mode]), rgb(VARIABLES[name][mode])) >= TEXT, name


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_coloured_code_can_be_read_where_it_changed(mode: int) -> None:
    words = {match[1]: (match[2], match[3]) for match in re.finditer(rf"\.(py-\w+) \{{ color: {PAIR.pattern}", CSS)}
    assert len(words) == 3
    grounds = [rgb(VARIABLES[name][mode]) for name in ("--sheet", *CHANGED)]
    for name, pair in {**words, "remark": VARIABLES["--quiet"], "text": VARIABLES["--ink"]}.items():
        for ground in grounds:
            assert contrast(rgb(pair[mode]), ground) >= TEXT, (name, ground)


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_every_mark_can_be_seen(mode: int) -> None:
    marks = used("stroke|fill|border-color|border-left|border-top|border|background|box-shadow") - DECORATION
    assert {"--good", "--bad", "--aside", "--faint", "--quiet"} <= marks
    for name in marks:
        for ground in GROUNDS[:2]:
            assert contrast(rgb(VARIABLES[name][mode]), rgb(VARIABLES[ground][mode])) >= MARK, (name, ground)


def test_no_mark_is_faded() -> None:
    """Opacity and mixed colours would undo the contrast: opacity is left to bands behind a line, and to all others while
    one is chosen; mixed colours to a link's underline."""
    faded = [selector for selector, body in rules() if re.search(r"(?<!-)opacity", body)]
    assert all("band" in selector or ":not(:hover" in selector for selector in faded), faded
    mixed = [selector for selector, body in rules() if "color-mix" in body]
    assert mixed == ["a:not(:hover)"]


@pytest.mark.parametrize("place", range(len(COLOURS)))
def test_every_shade_of_a_figure_can_be_seen(place: int) -> None:
    assert shade(place, 0) == COLOURS[place] and shade(place, 1) == LAST_SHADES[place]
    sheet = rgb(VARIABLES["--sheet"][1])
    for colour in [*(shade(place, step / 24) for step in range(25)), OTHERS]:
        assert contrast(rgb(colour), (1.0, 1.0, 1.0)) >= MARK, colour
        assert contrast(turned_over(rgb(colour), sheet), sheet) >= MARK, colour


def test_the_figures_letters_can_be_read() -> None:
    style = STYLE.read_text(encoding="utf-8")
    sheet = rgb(VARIABLES["--sheet"][1])
    for colour in re.findall(r"tick.color: (\w{6})", style):
        assert contrast(rgb(f"#{colour}"), (1.0, 1.0, 1.0)) >= TEXT
        assert contrast(turned_over(rgb(f"#{colour}"), sheet), sheet) >= TEXT


def test_the_numbers_of_a_heat_map_can_be_read() -> None:
    """On every shade from white to the darkest in use."""
    sheet, letters = rgb(VARIABLES["--sheet"][1]), rgb(LETTERS)
    for step in range(21):
        red, green, blue, _ = colormaps["Blues"](LIGHT * step / 20)
        assert contrast((red, green, blue), letters) >= TEXT
        assert contrast(turned_over((red, green, blue), sheet), turned_over(letters, sheet)) >= TEXT


def test_plain_figures_have_the_palette_too() -> None:
    with styled():
        assert rcParams["axes.prop_cycle"].by_key()["color"] == [*COLOURS]


def test_the_shares_of_the_page_are_from_0_to_1() -> None:
    """As in tables and metrics.json: no script of the page makes per cents of shares."""
    scripts = "\n".join(files(page).joinpath(name).read_text(encoding="utf-8") for name in page.SCRIPTS)
    assert "100 *" not in scripts and "* 100" not in scripts
    assert re.search(r"share: part\b", scripts) and re.search(r"const part = \(share\) => fixed\(share, 3\)", scripts)
