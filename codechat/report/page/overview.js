// From the headline to the tables and figures: all that is seen before a session is opened.


function drawFindings() {
  const { title, text, facts } = REPORT.findings;
  document.title = `${title} – codechat`;
  byId("headline").textContent = title;
  if (!REFINED.length) byId("kicker").textContent = REPORT.protocols.map((protocol) => protocol.name).join(" · ");
  byId("lede").textContent = text;
  byId("facts").append(...facts.map(([figure, what]) => el("li", {}, el("strong", {}, figure), el("span", {}, what))));
}

const TREND = { decreasing: "↓", increasing: "↑", "no trend": "·" };
const SCOPES = ["cosmetic", "structural", "semantic"];

// The columns, each with what a cell shows there. What is the same in every cell is left out of the names.
function boardColumns() {
  const most = Math.max(...REFINED.map((cell) => cell.turns));
  const varies = (of) => new Set(REFINED.map(of)).size > 1;
  const rate = (group, title, hint, of) => ({ group, title, hint, numeric: true, of: (cell) => ({ show: percent(of(cell)), by: of(cell) }) });
  const amount = (group, title, hint, of) => ({ group, title, hint, numeric: true, of: (cell) => ({ show: count(of(cell)), by: of(cell) }) });
  const word = (title, of) => varies(of) && { title, of: (cell) => ({ show: of(cell), by: of(cell) }) };
  return [
    { title: "Model", of: (cell) => ({ show: modelLink(cell), by: cell.model }) },
    word("Dataset", (cell) => cell.dataset), word("Agenda", settingOf),
    { group: "Sustained turns", title: "MST", numeric: true, hint: "mean sustained turns", of: (cell) => ({ show: fixed(cell.mst), by: cell.mst, strong: true }) },
    { group: "Sustained turns", title: "95 % interval", numeric: true, of: (cell) => intervalOf(cell, most) },
    rate("Pass@1", "first", "at turn 0", (cell) => cell.pass_at_1?.[0]),
    rate("Pass@1", "last", "at the last turn", (cell) => cell.pass_at_1?.at(-1)),
    { group: "Pass@1", title: "Δ %", numeric: true, hint: "change from the first turn to the last, in per cent of the first",
      of: (cell) => ({ show: signed(cell.delta_pct), by: cell.delta_pct }) },
    { group: "Pass@1", title: "trend", hint: "Mann–Kendall: ↓ decreasing, ↑ increasing, · no trend at α = 0.05", of: trendOf },
    rate("", "Adhered", "instructions followed, of those judged", (cell) => cell.adherence),
    ...SCOPES.map((scope) => rate("Regression rate", scope, `${scope} changes that break working code`,
      (cell) => cell.regression?.by_scope[scope])),
    amount("Sessions", "all", "errored ones included", (cell) => cell.sessions), amount("Sessions", "errored", "left out of every figure", (cell) => cell.errored),
    amount("Turns", "skipped", "turns without an applicable instruction", (cell) => cell.skipped_turns),
    amount("Turns", "undecided", "turns without a readable verdict on adherence", (cell) => cell.undecided),
    ...useColumns(),
  ].filter(Boolean);
}

function useColumns() {
  const tokens = (cell) => total(cell.tokens, (used) => used.input_tokens + used.output_tokens);
  const dollars = (cell) => total(cell.cost, (cost) => cost);
  return [
    { group: "Use", title: "tokens", numeric: true, hint: "input and output, model and judge", of: (cell) => ({ show: count(tokens(cell)), by: tokens(cell) }) },
    { group: "Use", title: "cost $", numeric: true, hint: "model and judge; a dash where no price is known",
      of: (cell) => ({ show: fixed(dollars(cell)), by: dollars(cell) }) },
  ];
}

const modelLink = (cell) => el("span", {}, el("a", { href: `#cell=${CELLS.indexOf(cell)}&list` }, cell.model),
  cell.baseline && el("span", { class: "chip", title: "it sees the reference solutions: a yardstick, no rival" }, "baseline"));

const settingOf = (cell) => cell.variant || cell.agenda;

// The sum over model and judge of what is known; null where nothing is.
function total(payers, of) {
  const parts = Object.values(payers).filter(known).map(of);
  return parts.length ? parts.reduce((sum, part) => sum + part, 0) : null;
}

function intervalOf(cell, most) {
  const [low, high] = cell.mst_ci || [null, null];
  if (!known(cell.mst)) return { show: DASH, by: null };
  const text = known(low) ? `${fixed(low)} – ${fixed(high)}` : DASH;
  return { show: el("span", { class: "interval" }, whisker(low, cell.mst, high, most), text), by: low };
}

function trendOf({ trend, trend_p: p }) {
  if (!trend) return { show: DASH, by: null };
  return { show: `${TREND[trend]} ${p < 0.001 ? "p < 0.001" : `p = ${fixed(p, 3)}`}`, by: p };
}

function drawBoard() {
  const columns = boardColumns();
  const rows = REFINED.map((cell) => columns.map((column) => column.of(cell)));
  const sort = columns.findIndex((column) => column.title === "MST");
  byId("board").replaceChildren(sortable(columns, rows, { caption: "Leaderboard", sort }));
}

// Cells that can be drawn over one another: one dataset, one setting.
function panels() {
  const found = new Map();
  for (const cell of REFINED) {
    const name = `${cell.dataset}, ${settingOf(cell)}`;
    if (!found.has(name)) found.set(name, []);
    found.get(name).push(cell);
  }
  return found;
}

function drawCurves() {
  const grouped = panels();
  for (const [name, cells] of grouped) {
    const drawn = cells.filter((cell) => cell.survival.length);
    if (drawn.length) byId("survival-charts").append(el("figure", {}, el("figcaption", {}, name), survivalChart(drawn)));
  }
  byId("legend").append(
    el("span", { class: "key passes" }, "Pass@1, % (band: 95 % interval by task)"), el("span", { class: "key alive" }, "alive since turn 0"),
    el("span", { class: "key adherence" }, "instructions followed"), el("span", { class: "key context" }, "other models alive"));
  for (const cells of grouped.values()) {
    for (const cell of cells) {
      const figures = `MST ${fixed(cell.mst)} · Δ ${signed(cell.delta_pct)} %`;
      byId("charts").append(el("figure", { class: "card" },
        el("figcaption", {}, el("a", { href: `#cell=${CELLS.indexOf(cell)}&list` }, cell.label), el("span", {}, cell.dataset), el("span", { class: "numbers" }, figures)),
        cellChart(cell, cells.filter((other) => other !== cell))));
    }
  }
}

// The parts that are of refinement cells go where there is none.
function drawRefined() {
  for (const id of ["leaderboard", "survival", "curves"]) byId(id).hidden = !REFINED.length;
  if (!REFINED.length) return;
  drawBoard();
  drawCurves();
}

async function drawSummary() {
  const summary = await unpacked("summary");
  const notes = [...summary.notes];
  if (known(REPORT.limit)) {
    notes.push(`To keep this page small, texts longer than ${count(REPORT.limit)} characters are shown without their middle.`);
  }
  byId("notes").append(...notes.map((note) => el("li", {}, note)));
  for (const { key, title, figures, tables } of summary.groups.filter((group) => group.tables.length + group.figures.length)) {
    const own = byId(`parts-${key}`); // a protocol's own section
    (own ?? byId("summary")).append(el("div", { class: "chapter" }, own ? null : el("h3", {}, title),
      el("div", { class: "figures" }, figures.map(drawFigure)), tables.map(folded(drawTable))));
  }
  byId("results").hidden = !byId("summary").childElementCount;
}

// A part that is drawn when it is first opened.
const folded = (draw) => (part) => {
  const box = el("details", { id: `part-${part.name}` }, el("summary", {}, part.title));
  box.addEventListener("toggle", () => { if (box.childElementCount === 1) box.append(draw(part)); });
  return box;
};

const WIDE = 900; // pixels, beyond which a figure's letters are too small in half a page

function drawFigure(figure) {
  const image = el("img", { src: `data:image/svg+xml;base64,${figure.svg}`, alt: figure.caption || figure.title });
  const wide = () => image.parentNode.classList.toggle("wide", image.naturalWidth > 1.7 * image.naturalHeight || image.naturalWidth > WIDE);
  image.addEventListener("load", wide);
  return el("figure", { class: "paper", id: `part-${figure.name}` }, el("h4", {}, figure.title), image, figure.caption && el("figcaption", {}, figure.caption));
}

function drawTable(table) {
  const columns = table.columns.map(([title, numeric]) => ({ title, numeric }));
  const rows = table.rows.map((row) => row.map(([show, by, strong]) => ({ show, by, strong })));
  return el("div", {}, sortable(columns, rows, { caption: table.title }), table.note && el("p", { class: "note" }, table.note));
}
