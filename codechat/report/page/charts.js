// Small line charts over the turns, as SVG.

const PLOT = { left: 34, right: 10, top: 10, bottom: 24 };

function scales(turns, width, height, right = PLOT.right) {
  const inner = width - PLOT.left - right;
  return {
    x: (turn) => PLOT.left + (turns > 1 ? (inner * turn) / (turns - 1) : inner / 2),
    y: (share) => PLOT.top + (1 - share) * (height - PLOT.top - PLOT.bottom),
  };
}

function axes(turns, width, height, scale, right = PLOT.right) {
  const step = turns > 30 ? 10 : turns > 16 ? 5 : width < 400 && turns > 8 ? 3 : 1;
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => [
    svg("line", { class: share ? "grid" : "base", x1: PLOT.left, x2: width - right, y1: scale.y(share), y2: scale.y(share) }),
    svg("text", { class: "tick", x: PLOT.left - 7, y: scale.y(share) + 3.5, "text-anchor": "end" }, `${100 * share}`),
  ]);
  const ticks = [];
  for (let turn = 0; turn < turns; turn += step) {
    ticks.push(svg("text", { class: "tick", x: scale.x(turn), y: height - 7, "text-anchor": "middle" }, `${turn}`));
  }
  return [...grid.flat(), ...ticks];
}

// A line through the known values; a missing one breaks it.
function line(values, scale, attributes, first = 0) {
  let path = "";
  let pen = "M";
  values.forEach((value, number) => {
    if (!known(value)) { pen = "M"; return; }
    path += `${pen}${scale.x(number + first).toFixed(1)} ${scale.y(value).toFixed(1)}`;
    pen = "L";
  });
  return svg("path", { ...attributes, d: path || "M0 0" });
}

function band(intervals, scale) {
  const kept = intervals.map((interval, turn) => ({ interval, turn })).filter((point) => point.interval);
  if (kept.length < 2) return null;
  const top = kept.map(({ interval, turn }) => `${scale.x(turn).toFixed(1)} ${scale.y(interval[1]).toFixed(1)}`);
  const low = kept.map(({ interval, turn }) => `${scale.x(turn).toFixed(1)} ${scale.y(interval[0]).toFixed(1)}`);
  return svg("path", { class: "band", d: `M${top.join("L")}L${low.reverse().join("L")}Z` });
}

// One cell's curves, before the survival of the others in its panel.
function cellChart(cell, others) {
  const [width, height] = [330, 200];
  const scale = scales(cell.turns, width, height);
  const passes = cell.pass_at_1 || [];
  const described = `${cell.label} on ${cell.dataset}: Pass@1 ${passes.map((rate) => percent(rate, 0)).join(", ")}`;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": described },
    axes(cell.turns, width, height, scale),
    others.map((other) => line(other.survival, scale, { class: "context" })),
    band(cell.pass_ci || [], scale),
    line(cell.iar || [], scale, { class: "adherence" }, 1),
    line(cell.survival, scale, { class: "alive" }),
    line(passes, scale, { class: "passes" }),
    passes.map((rate, turn) => known(rate) && svg("circle", { class: "point", cx: scale.x(turn), cy: scale.y(rate), r: 2.6 },
      svg("title", {}, `turn ${turn}: Pass@1 ${percent(rate)}, alive ${percent(cell.survival[turn])}`))));
}

const HUES = [...new Set(CELLS.map((cell) => cell.model))]; // a model's colour is the same in every chart

// All models of one dataset and setting, each named at the end of its line.
function survivalChart(cells) {
  const [width, height] = matchMedia("(max-width: 720px)").matches ? [360, 260] : [560, 300];
  const right = 12 + 6.6 * Math.min(26, Math.max(...cells.map((cell) => cell.model.length)));
  const turns = Math.max(...cells.map((cell) => cell.turns));
  const scale = scales(turns, width, height, right);
  const ends = cells
    .map((cell) => ({ cell, y: scale.y(cell.survival.at(-1) ?? 0) }))
    .sort((one, two) => one.y - two.y);
  for (let at = 1; at < ends.length; at++) ends[at].y = Math.max(ends[at].y, ends[at - 1].y + 13);
  const over = Math.max(0, (ends.at(-1)?.y ?? 0) - (height - PLOT.bottom + 4));
  for (let at = ends.length - 1, floor = Infinity; at >= 0; at--) {
    ends[at].y = Math.min(ends[at].y - (at === ends.length - 1 ? over : 0), floor);
    floor = ends[at].y - 13;
  }
  const described = cells.map((cell) => `${cell.model} ${percent(cell.survival.at(-1), 0)}`).join(", ");
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Alive at the last turn: ${described}` },
    axes(turns, width, height, scale, right),
    ends.map(({ cell, y }) => svg("g", { class: `series hue-${HUES.indexOf(cell.model) % 8}`, tabindex: 0, "aria-label": cell.label },
      line(cell.survival, scale, { class: "line" }),
      svg("text", { x: width - right + 7, y: y + 3.5 }, cell.model.length > 26 ? `${cell.model.slice(0, 25)}…` : cell.model),
      svg("title", {}, `${cell.label}: ${cell.survival.map((share) => percent(share, 0)).join(", ")}`))));
}

// An interval with its mean, on the scale from 0 to `most`.
function whisker(low, value, high, most) {
  const x = (number) => (4 + (92 * number) / most).toFixed(1);
  return svg("svg", { class: "whisker", viewBox: "0 0 100 12", "aria-hidden": "true" },
    svg("line", { class: "rail", x1: 4, x2: 96, y1: 6, y2: 6 }),
    known(low) && svg("line", { class: "range", x1: x(low), x2: x(high), y1: 6, y2: 6 }),
    svg("circle", { cx: x(value), cy: 6, r: 3.4 }));
}
