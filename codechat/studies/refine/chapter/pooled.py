"""Rates over all turns together as figures: by model, by scope and by change (paper, Fig. 7, and Figs. 4 and 5)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from codechat.domain import CHANGES, SCOPES
from codechat.report.data import Drawing
from codechat.report.drawing.plots import SPREAD, bars, from_zero, spread
from codechat.report.drawing.style import EDGE, Look, panels
from codechat.studies.refine.chapter.means import GROUP, OVERALL, described, rate_of
from codechat.studies.refine.chapter.outcomes import RefineStudy
from codechat.studies.refine.chapter.together import Pick, Together

WHOLE: dict[str, Any] = {
    "color": "#111111", "marker": "D", "linestyle": "none", "label": "all models together", "markersize": 8,
    "elinewidth": 1.8, "capsize": 4, "zorder": 4, **EDGE,
}  # fmt: skip
PARTS: dict[str, Sequence[str]] = {"by model": (), "by scope": SCOPES, "by change": CHANGES}
MEANINGS = {
    "self_correction": ("Self-correction", "mended failing code", "paper, Fig. 7"),
    "regression": ("Regression", "broke passing code", "paper, Figs. 4 and 5, over all datasets"),
}


def drawings(setups: Sequence[Together]) -> Iterator[Drawing]:
    """A figure per rate, if a setup has several models."""
    for rate, (name, did, where) in MEANINGS.items() if setups else ():
        yield Drawing(
            f"models_{rate}", f"{name} over all turns together ({where})",
            f"The share of turns that {did}: by model, scope and change. Black points and the dashed line are all "
            f"models together; whiskers: 95 % by task. Over {described(setups)}.",
            GROUP, partial(_draw, setups=setups, rate=rate),
        )  # fmt: skip


def _draw(study: RefineStudy, look: Look, setups: Sequence[Together], rate: str) -> Any:
    """A row of three panels per setup."""
    places = [(setup, part) for setup in setups for part in PARTS]
    several = len(setups) > 1
    titles = [f"{setup.setting}, {part}" if several else part.capitalize() for setup, part in places]
    figure, axes = panels(titles, width=3.9, height=3.4, columns=3)
    for panel, (setup, part) in zip(axes, places, strict=True):
        kinds = [(part.removeprefix("by "), name) for name in PARTS[part]]
        if kinds:
            _by_type(panel, look, setup, {name: rate_of(rate, *kind) for kind in kinds for name in kind[1:]})
        else:
            _by_model(panel, look, setup, rate_of(rate, *OVERALL))
            panel.set_ylabel(f"{MEANINGS[rate][0]} rate")
    return from_zero(figure, axes)


def _by_model(panel: Any, look: Look, setup: Together, pick: Pick) -> None:
    """A point per model, and what all have together as a line."""
    for place, model in enumerate(setup.models):
        bars(panel, [(place, *setup.pooled(pick, [model]))], **_style(look, setup, model))
    whole, _ = setup.pooled(pick)
    if whole is not None:
        panel.axhline(whole, color=WHOLE["color"], linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    _name_groups(panel, setup.models)


def _by_type(panel: Any, look: Look, setup: Together, picks: Mapping[str, Pick]) -> None:
    """Per type a point for all together, and beside it one per model."""
    for place in range(0, len(picks), 2):
        panel.axvspan(place - 0.5, place + 0.5, color="#F6F6F6", linewidth=0, zorder=0)
    entrants = [(WHOLE, []), *((_style(look, setup, model), [model]) for model in setup.models)]
    for number, (style, models) in enumerate(entrants):
        aside = spread(number, len(entrants), SPREAD)
        found = enumerate(setup.pooled(pick, models) for pick in picks.values())
        bars(panel, [(place + aside, *measured) for place, measured in found], **style)
    _name_groups(panel, list(picks))


def _style(look: Look, setup: Together, model: str) -> dict[str, Any]:
    label = next(found.cell.label for (name, _), found in setup.cells.items() if name == model)
    return {**look.point(label), "label": model}


def _name_groups(panel: Any, names: Sequence[str]) -> None:
    long = sum(map(len, names)) > 30
    panel.set_xticks(range(len(names)), names, **({"rotation": 30, "ha": "right", "fontsize": 8.5} if long else {}))
    panel.set_xlim(-0.5, len(names) - 0.5)
    panel.grid(visible=False, axis="x")
    panel.tick_params(axis="x", length=0)
