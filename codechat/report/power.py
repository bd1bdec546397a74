"""The curve of a plan: the smallest detectable difference against the number of tasks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from codechat.metrics.power import UNITS, Spread
from codechat.report.drawing.style import COLOURS, legend, panels, save, styled


def draw_power(spreads: Mapping[str, Spread], tasks: int, samples: Sequence[int], folder: Path) -> tuple[Path, Path]:
    """Write plan.png and plan.svg: a panel per figure, a line per number of samples, unpaired ones dashed."""
    sizes = sorted({max(2, round(tasks * step / 40)) for step in range(2, 41)})
    with styled():
        figure, axes = panels([f"{name}, {UNITS[name]}" for name in spreads], height=3.2, one_scale=False)
        for panel, spread in zip(axes, spreads.values(), strict=True):
            for number, k in enumerate(samples):
                for paired, dash in ((True, "-"), (False, (0, (4, 2)))):
                    found = [spread.detectable(size, k, paired=paired) for size in sizes]
                    label = f"{k} sample{'s' * (k > 1)}, {'paired' if paired else 'unpaired'}"
                    panel.plot(sizes, found, color=COLOURS[number], linestyle=dash, label=label)
            panel.set(xlabel="Tasks", ylabel="Detectable difference")
            panel.set_ylim(bottom=0)
        legend(figure, axes)
        return save(figure, folder, "plan")
