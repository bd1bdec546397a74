// A section per protocol other than the refinement, drawn from what the protocol says that it measures.

const cellsOf = (protocol) => CELLS.filter((cell) => cell.protocol === protocol.key);
const TOPS = { share: 1, percent: 100 };
const valueText = (unit, value) => (unit === "share" ? percent(value) : unit === "count" ? count(value) : fixed(value));

function drawProtocols() {
  byId("protocols").append(...REPORT.protocols.map((protocol) => {
    const { standing } = protocol;
    return el("section", { id: `protocol-${protocol.key}`, "aria-labelledby": `protocol-${protocol.key}-title` },
      el("h2", { id: `protocol-${protocol.key}-title` }, protocol.title),
      el("p", { class: "note" }, `${standing.title}. ${standing.text}`),
      finalsBoard(protocol),
      el("p", { class: "note" }, `A turn passes where ${protocol.passed}. Bands: 95 % intervals by task.`),
      el("div", { class: "wide-charts" }, seriesCharts(protocol)),
      el("div", { class: "parts", id: `parts-${protocol.key}` }));
  }));
}

// The cells of a protocol with its final figures; the first, by which they are ranked, with its interval drawn.
function finalsBoard(protocol) {
  const cells = cellsOf(protocol);
  const varies = (of) => new Set(cells.map(of)).size > 1;
  const word = (title, of) => varies(of) && { title, of: (cell) => ({ show: of(cell), by: of(cell) }) };
  const columns = [
    { title: "Model", of: (cell) => ({ show: modelLink(cell), by: cell.label }) },
    word("Dataset", (cell) => cell.dataset), word("Setting", (cell) => cell.variant),
    ...protocol.finals.map(({ key, label, unit, help }, place) => ({
      title: label, numeric: true, hint: help, of: (cell) => finalOf(cells, cell, { key, unit, place }),
    })),
    { group: "Sessions", title: "all", numeric: true, hint: "errored ones included", of: (cell) => ({ show: count(cell.sessions), by: cell.sessions }) },
    { group: "Sessions", title: "errored", numeric: true, hint: "left out of every figure", of: (cell) => ({ show: count(cell.errored), by: cell.errored }) },
    ...useColumns(),
  ].filter(Boolean);
  const rows = cells.map((cell) => columns.map((column) => column.of(cell)));
  return sortable(columns, rows, { caption: protocol.name, sort: columns.findIndex(({ title }) => title === protocol.finals[0]?.label) });
}

function finalOf(cells, cell, { key, unit, place }) {
  const [value, ends] = cell.finals[key] ?? [null, null];
  const text = valueText(unit, value);
  if (!known(value) || !ends) return { show: text, by: value, strong: place === 0 };
  const range = `${valueText(unit, ends[0])} – ${valueText(unit, ends[1])}`;
  if (place) return { show: el("span", { title: `95 % interval ${range}` }, text), by: value };
  const most = TOPS[unit] ?? Math.max(...cells.map((each) => each.finals[key]?.[1]?.[1] ?? 0));
  return { show: el("span", { class: "interval", title: `95 % interval ${range}` }, whisker(ends[0], value, ends[1], most || 1), el("strong", {}, text)), by: value };
}

// The end of an axis for values up to `highest`: 1, 2, 4 or 8 times a power of ten, whose quarters are short numbers.
function roundTop(highest) {
  if (!(highest > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(highest));
  return power * [1, 2, 4, 8, 10].find((factor) => factor * power >= highest);
}

// A chart per series and dataset.
function seriesCharts(protocol) {
  const cells = cellsOf(protocol);
  const datasets = [...new Set(cells.map((cell) => cell.dataset))];
  return protocol.series.flatMap(({ key, label, unit, help, first }) => datasets.map((dataset) => {
    const lines = cells.filter((cell) => cell.dataset === dataset && cell.series[key]?.[0]?.some(known))
      .map((cell) => ({ cell, name: cell.label, values: cell.series[key][0], ci: cell.series[key][1] }));
    if (!lines.length) return null;
    const highest = Math.max(...lines.flatMap(({ values, ci }) => [...values, ...(ci ?? []).map((ends) => ends?.[1])]).filter(known));
    const top = unit === "share" ? 1 : roundTop(highest);
    const name = datasets.length > 1 ? `${label}, ${dataset}` : label;
    return el("figure", {}, el("figcaption", { title: help }, el("strong", {}, name), unit === "share" ? ", %" : "", help ? `: ${help}` : ""),
      linesChart(lines, label, { first, top, share: unit === "share" }));
  }));
}
