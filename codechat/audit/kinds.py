"""The kinds of decisions that people label besides those on instructions, by the setting that draws them."""

from collections.abc import Mapping

from codechat.audit.conditions import CONDITIONS
from codechat.audit.constraints import CONSTRAINTS
from codechat.audit.judged import Kind

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (CONSTRAINTS, CONDITIONS)}
