// From the headline to the tables and figures: all that is seen before a session is opened. What there is, the report says.

const UNITS = { share: part, change: signed, difference: (value) => signed(value, 3), count, number: fixed, percent: fixed, p: pValue, text: (text) => text ?? DASH };

const unbroken = (text) => text.replaceAll(" %", "\u00a0%").replace(/\[([^\s\]]+), ([^\s\]]+)\]/g, "[$1,\u00a0$2]"); // no line begins with the sign, none divides an interval

function drawFindings() {
  const { title, text, facts, kicker } = REPORT.findings;
  document.title = `${title} – codechat`;
  byId("headline").textContent = unbroken(title);
  byId("cautions").append(...REPORT.cautions.map((text) => el("li", {}, `Caution: ${text}.`)));
  byId("kicker").textContent = kicker;
  byId("lede").textContent = unbroken(text);
  byId("facts").append(...facts.map(([figure, what]) => el("li", {}, el("strong", {}, figure), el("span", {}, what))));
}

function drawSections() {
  byId("chapters").append(...REPORT.sections.map(({ key, title, parts, groups }) =>
    el("section", { id: key, "aria-labelledby": `${key}-title` }, el("h2", { id: `${key}-title` }, title), parts.flatMap(drawPart),
      groups.length > 0 && el("div", { class: "parts", "data-groups": groups.join(" ") }))));
}

function drawPart(part) {
  if (typeof part === "string") return el("p", { class: "note" }, unbroken(part));
  if (Array.isArray(part)) return el("div", { class: "wide-charts" }, part.map(drawChart));
  return part.is === "Board" ? drawBoard(part) : drawCards(part);
}

const modelLink = (cell) => el("span", {}, el("a", { href: `#cell=${CELLS.indexOf(cell)}&list` }, cell.model),
  cell.baseline && el("span", { class: "chip", title: "it sees the reference solutions: a yardstick, no rival" }, "baseline"));

function drawBoard({ caption, columns, sort }) {
  const shown = columns.map((column) => ({ ...column, hint: column.hint || null, numeric: !["cell", "text"].includes(column.unit) }));
  const rows = columns[0].values.map((_, row) => columns.map((column) => boardCell(column, column.values[row])));
  return sortable(shown, rows, { caption, sort: columns.findIndex(({ title }) => title === sort) });
}

// A value, a value with its interval, or a value to sort by with its text.
function boardCell({ unit, strong, most, least, ends: range }, stored) {
  if (unit === "cell") return { show: modelLink(CELLS[stored]), by: CELLS[stored].label };
  const [by, more] = Array.isArray(stored) ? stored : [stored, null];
  if (unit === "text" || !known(by)) return { show: known(by) ? more ?? by : DASH, by, strong };
  const text = UNITS[unit](by);
  const between = known(more) ? `${UNITS[unit](more[0])} – ${UNITS[unit](more[1])}` : DASH;
  const drawn = () => whisker(more?.[0], by, more?.[1], most, least);
  if (range) return { show: el("span", { class: "interval" }, drawn(), between), by: more?.[0] };
  if (!known(more)) return { show: text, by, strong };
  const title = `95 % interval ${between}`;
  if (!known(most)) return { show: el("span", { title }, text), by };
  if (unit === "difference") return { show: el("span", { class: "interval" }, drawn(), `${text} [${between.replace(" – ", ", ")}]`), by };
  return { show: el("span", { class: "interval", title }, drawn(), el("strong", {}, text)), by };
}

function drawChart({ title, text, what, lines, top, share }) {
  const bars = lines.every(({ values }) => values.length === 1);
  const rest = bars ? 0 : Math.max(0, lines.length - MOST_NAMED);
  const named = rest ? `. Named: the ${MOST_NAMED} highest at the last turn; grey: the other ${rest}.` : "";
  return el("figure", {}, el("figcaption", {}, title && el("strong", {}, title), text, named),
    (bars ? barsChart : linesChart)(
      lines.map((line) => ({ ...line, cell: CELLS[line.cell] })), what, { first: lines[0].first, top, share }));
}

function drawCards({ legend, cards }) {
  return [el("p", { class: "legend" }, legend.map(([style, what]) => el("span", { class: `key ${style}` }, what))),
    el("div", { class: "charts" }, cards.map(({ cell, figures, lines }) => {
      const { label, dataset } = CELLS[cell];
      const numbers = figures.map(([name, value, unit, sign]) => `${name} ${UNITS[unit](value)}${sign}`).join(" · ");
      return el("figure", { class: "card" },
        el("figcaption", {}, el("a", { href: `#cell=${cell}&list` }, label), el("span", {}, dataset), el("span", { class: "numbers" }, numbers)),
        cardChart(lines, `${label} on ${dataset}`));
    }))];
}

async function drawSummary() {
  const summary = await unpacked("summary");
  const notes = [...summary.notes];
  if (known(REPORT.limit)) {
    notes.push(`To keep this page small, texts longer than ${count(REPORT.limit)} characters are shown without their middle.`);
  }
  byId("notes").append(...notes.map((note) => el("li", {}, note)));
  for (const place of document.querySelectorAll(".parts")) {
    const keys = place.dataset.groups.split(" ");
    for (const { key, title, figures, tables } of summary.groups) {
      if (keys.includes(key) && figures.length + tables.length) {
        place.append(el("div", { class: "chapter" }, keys.length > 1 && el("h3", {}, title),
          el("div", { class: "figures" }, figures.map(drawFigure)), tables.map(folded(drawTable))));
      }
    }
    place.parentNode.hidden = !place.childElementCount && place.parentNode.childElementCount === 2; // a title alone
  }
}

// A part that is drawn when it is first opened.
const folded = (draw) => (part) => {
  const box = el("details", { id: `part-${part.name}` }, el("summary", {}, part.title));
  box.addEventListener("toggle", () => { if (box.childElementCount === 1) box.append(draw(part)); });
  return box;
};

const WIDE = 900; // pixels, beyond which a figure's letters are too small in half a page
const SMALLEST = 0.8; // of its size a figure shrinks no further: it scrolls in a box of its own

function drawFigure(figure) {
  const image = el("img", { src: `data:image/svg+xml;base64,${figure.svg}`, alt: figure.caption || figure.title });
  image.addEventListener("load", () => {
    image.closest("figure").classList.toggle("wide", image.naturalWidth > 1.7 * image.naturalHeight || image.naturalWidth > WIDE);
    image.style.minWidth = `${Math.round(SMALLEST * image.naturalWidth)}px`;
  });
  return el("figure", { class: "paper", id: `part-${figure.name}` }, el("h4", {}, figure.title),
    el("div", { class: "sight", tabindex: 0, role: "region", "aria-label": figure.title }, image), figure.caption && el("figcaption", {}, figure.caption));
}

function drawTable(table) {
  const columns = table.columns.map(([title, numeric]) => ({ title, numeric }));
  const rows = table.rows.map((row) => row.map(([show, by, strong]) => ({ show, by, strong })));
  return el("div", {}, sortable(columns, rows, { caption: table.title }), table.note && el("p", { class: "note" }, table.note));
}
