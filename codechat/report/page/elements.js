// Building blocks. Text reaches the page as text nodes alone: nothing here, or anywhere, parses markup.

const byId = (id) => document.getElementById(id);
const REPORT = JSON.parse(byId("overview").textContent);
const CELLS = REPORT.cells;

function fitted(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const el = (tag, attributes = {}, ...children) => fitted(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fitted(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const DASH = "–";
const known = (value) => value !== null && value !== undefined;
const digitsOf = (value, digits) => (Math.abs(value) < 10000 ? value.toFixed(digits) : Math.round(value).toLocaleString("en"));
const fixed = (value, digits = 2) => (known(value) ? digitsOf(value, digits).replace("-", "−") : DASH);
const part = (share) => fixed(share, 3); // a share, from 0 to 1 as in every table
const signed = (value, digits = 1) => (known(value) ? (value > 0 ? "+" : "") + fixed(value, digits) : DASH);
const pValue = (value) => (known(value) && value < 0.001 ? "< 0.001" : fixed(value, 3));
const count = (value) => (known(value) ? value.toLocaleString("en") : DASH);
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

// The JSON of a packed block, decoded by the browser itself. The document may still be arriving.
async function unpacked(name) {
  const block = () => byId(`packed-${name}`);
  const arriving = () => document.readyState === "loading" && !block()?.nextElementSibling;
  while (arriving()) await new Promise((resolve) => setTimeout(resolve, 20));
  const letters = atob(block().textContent);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) bytes[at] = letters.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// A table to sort by its column heads. A cell is {show: text or node, by: value to sort by, strong}.
function sortable(columns, rows, options = {}) {
  const body = el("tbody");
  const heads = [];
  const draw = (order) => body.replaceChildren(...order.map((row) => rowOf(columns, row)));
  const sort = (number, descending) => {
    heads.forEach((head, other) => {
      head.ariaSort = other === number ? (descending ? "descending" : "ascending") : null;
    });
    const missing = (value) => value === null || value === undefined;
    draw([...rows].sort((one, two) => {
      const [a, b] = [one[number].by, two[number].by];
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
      return descending ? -order : order;
    }));
  };
  for (const [number, column] of columns.entries()) {
    const click = () => sort(number, heads[number].ariaSort ? heads[number].ariaSort === "ascending" : column.numeric);
    const button = el("button", { type: "button", on: { click }, title: column.hint }, column.title);
    heads.push(el("th", { scope: "col", class: column.numeric ? "number" : null }, button));
  }
  draw(rows);
  if (known(options.sort)) sort(options.sort, true);
  const caption = el("caption", { class: "unseen" }, options.caption || "");
  const table = el("table", {}, caption, el("thead", {}, groupRow(columns), el("tr", {}, heads)), body);
  return el("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": options.caption }, table);
}

// What neighbouring columns have in common, where a table tells it.
function groupRow(columns) {
  const groups = [];
  for (const { group } of columns) {
    if (groups.length && groups.at(-1).group === group) groups.at(-1).span++;
    else groups.push({ group, span: 1 });
  }
  if (!groups.some(({ group }) => group)) return null;
  return el("tr", { class: "groups" }, groups.map(({ group, span }) =>
    group ? el("th", { scope: "colgroup", colspan: span }, el("span", {}, group)) : el("td", { colspan: span })));
}

function rowOf(columns, row) {
  return el("tr", {}, row.map((cell, number) => {
    const shown = cell.strong ? el("strong", {}, cell.show) : cell.show;
    const length = typeof cell.show === "string" ? (cell.show.length > 24 ? "long" : "short") : null;
    const attributes = { class: columns[number].numeric ? "number" : length };
    return number === 0 ? el("th", { scope: "row", ...attributes }, shown) : el("td", attributes, shown);
  }));
}
