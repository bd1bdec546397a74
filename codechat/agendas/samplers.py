"""The two ways to draw an agenda from its distribution."""

import random

from codechat.agendas import AGENDAS, AgendaConfig


@AGENDAS.register("quota", AgendaConfig)
def quota(config: AgendaConfig, generator: random.Random) -> list[str]:
    """D as exact counts by largest remainder, ties broken by the session's generator, then shuffled (paper III-C)."""
    count = config.turns - 1
    weights = config.weights()
    # Rounding keeps 1/3 * 9 at 3: floats just under an integer must not lose a whole unit.
    exact = {name: round(weight * count, 9) for name, weight in weights.items()}
    quotas = {name: int(share) for name, share in exact.items()}
    candidates = [name for name, weight in weights.items() if weight > 0]
    generator.shuffle(candidates)
    candidates.sort(key=lambda name: round(exact[name] - quotas[name], 9), reverse=True)  # stable: ties stay shuffled
    for name in candidates[: count - sum(quotas.values())]:
        quotas[name] += 1
    agenda = [name for name, times in quotas.items() for _ in range(times)]
    if config.order == "shuffled":
        generator.shuffle(agenda)
    return agenda


@AGENDAS.register("iid", AgendaConfig)
def iid(config: AgendaConfig, generator: random.Random) -> list[str]:
    """Each turn's type drawn independently from D."""
    weights = config.weights()
    return generator.choices(list(weights), list(weights.values()), k=config.turns - 1)
