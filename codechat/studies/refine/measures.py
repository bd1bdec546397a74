"""The measures of the refinement protocol (paper III-F, V and VI); the tracked names are fixed by the contract."""

from codechat.metrics.measures import Breakdown, Final, Measures, Series

_BREAKS = "follow-up turns that break the code, of those whose code before passed"
_MENDS = "follow-up turns that mend the code, of those whose code before failed"

REFINE = Measures(
    protocol="refine",
    title="CodeChat-Eval: functionality-preserving refinements",
    series=(
        Series("pass_at_1", "Pass@1", help="sessions whose code passes the whole test suite at the turn"),
        Series("iar", "adherence rate", first_turn=1, help="instructions followed at the turn, of those judged"),
    ),
    finals=(
        Final("mst", "Mean Sustainable Turns", unit="number", help="passing turns from turn 0 on, per session"),
        Final("delta_pct", "change of Pass@1 in %", unit="percent", help="first to last turn"),
        Final("regression", "regression rate", "regression.overall", "share", higher_is_better=False, help=_BREAKS),
        Final("self_correction", "self-correction rate", "self_correction.overall", help=_MENDS),
        Final("phi", "phi of passing and adherence", "phi.value", "number", None),
        Final("iar_delta_pct", "change of adherence in %", unit="percent", help="first to last judged turn"),
        Final("mk_p", "p of the trend of Pass@1", "mann_kendall.pass_at_1.p", "p", None),
        Final("mk_p_iar", "p of the trend of adherence", "mann_kendall.iar.p", "p", None),
    ),
    breakdowns=(
        Breakdown("mst_at", "MST, truncated", "turns", "mst_at", "number"),
        *(
            Breakdown(key, label, by, f"{key}.by_{by}", "share", better, meaning)
            for key, label, better, meaning in (
                ("regression", "regression rate", False, _BREAKS),
                ("self_correction", "self-correction rate", True, _MENDS),
            )
            for by in ("scope", "change", "cell")
        ),
    ),
    counts=(
        Final(
            "skipped_turns",
            "Skipped turns",
            unit="count",
            higher_is_better=None,
            help="no instruction applied; they count for Pass@1 and MST alone",
        ),
        Final(
            "undecided",
            "Undecided",
            unit="count",
            higher_is_better=None,
            help="no readable verdict on adherence; left out of adherence and Phi",
        ),
        Final(
            "undecided_applicability",
            "Undecided applicability",
            unit="count",
            higher_is_better=None,
            help="nobody could decide; counts as not applicable",
        ),
    ),
    passed="the code passes the whole test suite",
)
