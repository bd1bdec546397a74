// Small line charts over the turns, as SVG.

const PLOT = { left: 40, right: 10, top: 10, bottom: 24 };

function scales(turns, width, height, right = PLOT.right) {
  const inner = width - PLOT.left - right;
  return {
    x: (turn) => PLOT.left + (turns > 1 ? (inner * turn) / (turns - 1) : inner / 2),
    y: (share) => PLOT.top + (1 - share) * (height - PLOT.top - PLOT.bottom),
  };
}

function axes(turns, width, height, scale, right = PLOT.right, shown = (share) => fixed(share)) {
  const step = turns > 30 ? 10 : turns > 16 ? 5 : width < 400 && turns > 8 ? 3 : 1;
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => [
    svg("line", { class: share ? "grid" : "base", x1: PLOT.left, x2: width - right, y1: scale.y(share), y2: scale.y(share) }),
    svg("text", { class: "tick", x: PLOT.left - 7, y: scale.y(share) + 3.5, "text-anchor": "end" }, shown(share)),
  ]);
  const ticks = [];
  for (let turn = 0; turn < turns; turn += step) {
    ticks.push(svg("text", { class: "tick", x: scale.x(turn), y: height - 7, "text-anchor": "middle" }, turn ? `${turn}` : "turn 0"));
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

function band(intervals, scale, first = 0) {
  const kept = intervals.map((interval, turn) => ({ interval, turn: turn + first })).filter((point) => point.interval);
  if (kept.length < 2) return null;
  const top = kept.map(({ interval, turn }) => `${scale.x(turn).toFixed(1)} ${scale.y(interval[1]).toFixed(1)}`);
  const low = kept.map(({ interval, turn }) => `${scale.x(turn).toFixed(1)} ${scale.y(interval[0]).toFixed(1)}`);
  return svg("path", { class: "band", d: `M${top.join("L")}L${low.reverse().join("L")}Z` });
}

// One cell's lines, each drawn by its style; the last is marked at every turn, with what the named ones are there.
function cardChart(lines, name) {
  const [width, height] = [330, 200];
  const turns = Math.max(1, ...lines.map(({ values, first }) => values.length + first));
  const scale = scales(turns, width, height);
  const main = lines.at(-1);
  const drawn = (which) => lines.filter(which).map(({ values, style, first }) => line(values, scale, { class: style }, first));
  const told = (turn) => lines.filter((one) => one.name).reverse().map((one) => `${one.name} ${part(one.values[turn - one.first])}`);
  const described = `${name}: ${main.name} ${main.values.map(part).join(", ")}`;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": described },
    axes(turns, width, height, scale), drawn((one) => one.style === "context"), main.ci && band(main.ci, scale, main.first),
    drawn((one) => one.style !== "context"),
    main.values.map((share, turn) => known(share) && svg("circle", { class: "point", cx: scale.x(turn), cy: scale.y(share), r: 2.6 },
      svg("title", {}, `turn ${turn}: ${told(turn).join(", ")}`))));
}

const HUES = [...new Set(CELLS.map((cell) => cell.model))]; // a model's colour is the same in every chart

const LONGEST = 26; // letters of a name beside its line
const MOST_BANDS = 4; // lines whose intervals are drawn: more would hide each other
const MOST_NAMED = 8; // lines with a colour and a name: more would look alike, and their names overlap

// The place of a line's colour: of its model, or, if a chart shows one model or too many, of the line among the named.
function huesOf(lines, named) {
  const models = new Set(lines.map(({ cell }) => cell.model));
  const names = named.map(({ name }) => name).sort();
  const byModel = models.size > 1 && HUES.length <= MOST_NAMED;
  return ({ cell, name }) => (byModel ? HUES.indexOf(cell.model) : names.indexOf(name)) % MOST_NAMED;
}

// Lines of one dataset, each named at its end: {cell, name, values}, from turn `first` on, with `ci` where known.
// The axis goes up to `top`. Of many lines the highest at the end have a colour and a name, and all others are grey.
function linesChart(lines, what, { first = 0, top = 1, share = true } = {}) {
  const [width, height] = matchMedia("(max-width: 720px)").matches ? [360, 260] : [560, 300];
  const right = 12 + 7.4 * Math.min(LONGEST, Math.max(...lines.map(({ name }) => name.length)));
  const turns = Math.max(...lines.map(({ values }) => values.length + first));
  const plain = scales(turns, width, height, right);
  const scale = { x: plain.x, y: (value) => plain.y(value / top) };
  const short = (value) => value.toLocaleString("en", { notation: "compact" });
  const tick = share ? undefined : (part) => (top < 10000 ? fixed(top * part, top < 4 ? 2 : 1) : short(top * part));
  const last = ({ values }) => values.findLast(known);
  const placed = lines.map((one) => ({ ...one, y: scale.y(last(one) ?? 0) })).sort((one, two) => one.y - two.y);
  const [ends, others] = placed.length > MOST_NAMED ? [placed.slice(0, MOST_NAMED), placed.slice(MOST_NAMED)] : [placed, []];
  for (let at = 1; at < ends.length; at++) ends[at].y = Math.max(ends[at].y, ends[at - 1].y + 13);
  const over = Math.max(0, (ends.at(-1)?.y ?? 0) - (height - PLOT.bottom + 4));
  for (let at = ends.length - 1, floor = Infinity; at >= 0; at--) {
    ends[at].y = Math.min(ends[at].y - (at === ends.length - 1 ? over : 0), floor);
    floor = ends[at].y - 13;
  }
  const shown = share ? part : (value) => fixed(value);
  const described = lines.map((one) => `${one.name} ${shown(last(one))}`).join(", ");
  const hue = huesOf(lines, ends);
  const twin = ({ cell }) => lines.filter((one) => one.cell.model === cell.model).findIndex((one) => one.cell === cell);
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${what} at the last turn: ${described}` },
    axes(turns, width, height, plain, right, tick),
    others.map((one) => svg("g", { class: "series rest", tabindex: 0, "aria-label": one.cell.label }, line(one.values, scale, { class: "line" }, first),
      svg("title", {}, `${one.cell.label}: ${one.values.map(shown).join(", ")}`))),
    ends.map((one) => svg("g", { class: `series hue-${hue(one)} twin-${twin(one) % 4}`, tabindex: 0, "aria-label": one.cell.label },
      one.ci && lines.length <= MOST_BANDS && band(one.ci, scale, first),
      line(one.values, scale, { class: "line" }, first),
      one.values.filter(known).length === 1 && svg("circle", { class: "end", cx: scale.x(first + one.values.findIndex(known)), cy: scale.y(last(one)), r: 3 }),
      svg("text", { x: width - right + 7, y: one.y + 3.5 }, one.name.length > LONGEST ? `${one.name.slice(0, LONGEST - 1)}…` : one.name),
      svg("title", {}, `${one.cell.label}: ${one.values.map(shown).join(", ")}`))));
}

// Bars of one value each, for lines that would be points: a single round has no course.
function barsChart(lines, what, { top = 1, share = true } = {}) {
  const [width, step] = [matchMedia("(max-width: 720px)").matches ? 360 : 560, 28];
  const left = 14 + 6.6 * Math.min(LONGEST, Math.max(...lines.map(({ name }) => name.length)));
  const [right, height] = [58, 12 + step * lines.length];
  const x = (value) => left + ((width - left - right) * value) / top;
  const shown = share ? part : (value) => fixed(value);
  const described = lines.map((one) => `${one.name} ${shown(one.values[0])}`).join(", ");
  const hue = huesOf(lines, lines);
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${what}: ${described}` },
    svg("line", { class: "base", x1: left, x2: left, y1: 2, y2: height - 8 }),
    lines.map(({ cell, name, values: [value], ci }, row) => {
      const [low, high] = ci?.[0] ?? [];
      const middle = 6 + step * (row + 0.5);
      return svg("g", { class: `series hue-${hue({ cell, name })}`, tabindex: 0, "aria-label": cell.label },
        svg("text", { x: left - 8, y: middle + 4, "text-anchor": "end" }, name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name),
        svg("rect", { class: "block", x: left, y: middle - 8, width: Math.max(1, x(value) - left), height: 16 }),
        known(low) && svg("line", { class: "reach", x1: x(low), x2: x(high), y1: middle, y2: middle }),
        svg("text", { x: x(Math.max(value, high ?? 0)) + 7, y: middle + 4 }, shown(value)),
        svg("title", {}, `${cell.label}: ${shown(value)}${known(low) ? `, 95 % interval ${shown(low)} – ${shown(high)}` : ""}`));
    }));
}

// An interval with its mean, on the scale from `least` to `most`; zero has a tick if it is within.
function whisker(low, value, high, most, least) {
  const x = (number) => (4 + (92 * (number - least)) / (most - least)).toFixed(1);
  return svg("svg", { class: "whisker", viewBox: "0 0 100 12", "aria-hidden": "true" },
    svg("line", { class: "rail", x1: 4, x2: 96, y1: 6, y2: 6 }),
    least < 0 && svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 1, y2: 11 }),
    known(low) && svg("line", { class: "range", x1: x(low), x2: x(high), y1: 6, y2: 6 }),
    svg("circle", { cx: x(value), cy: 6, r: 3.4 }));
}
