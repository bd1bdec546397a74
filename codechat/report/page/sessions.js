// The list of sessions: an index that is searched and filtered, of which only the visible rows are drawn.

const OUTCOMES = { p: "pass", f: "fail", t: "timeout", n: "no code with the name", s: "syntax error", c: "crash", "-": "not scored" };
const GLYPHS = { p: "", f: "×", t: "t", n: "∅", s: "!", c: "c", "-": "·" };
const SCOPES = ["cosmetic", "structural", "semantic"]; // in this order
const EVENTS = { broke: "broke here", mended: "mended here", a: "adhered", v: "violated", u: "undecided", s: "skipped" };
const STATES = ["completed", "errored", "context overflow"];
const FILTERS = ["q", "protocol", "cell", "model", "dataset", "task", "broken", "outcome", "scope", "change", "instruction", "event", "state"];

let INDEX = null;
let filters = {};
let shown = []; // numbers of the sessions that match, in order
let selected = 0; // a place in `shown`

const passes = (letter) => letter === "p";
const fails = (letter) => letter !== "p" && letter !== "-";
// The turn whose code first did not pass; -1 if there is none.
const brokenAt = (number) => [...INDEX.outcomes[number]].findIndex(fails);
const cellOf = (number) => CELLS[INDEX.cell[number]];
const taskOf = (number) => INDEX.tasks[INDEX.task[number]];
// The task, and which of its samples this is if its cell has several.
const nameOf = (number) => (INDEX.seeds && cellOf(number).samples > 1 ? `${taskOf(number)}, seed ${INDEX.seeds[number]}` : taskOf(number));
const MANY = new Set(CELLS.map((cell) => cell.protocol)).size > 1;
const placeOf = (cell) => (MANY ? `${cell.dataset}, ${cell.protocol}` : cell.dataset);
const answered = (judged) => judged !== "s" && judged !== "o";

const rolledBack = (number, turn) => INDEX.rolled_back?.[number].includes(turn) ?? false;

// The outcome of the code that a turn met: of the last turn before it that was not rolled back.
function outcomeBefore(number, turn) {
  let at = turn - 1;
  while (rolledBack(number, at)) at--;
  return INDEX.outcomes[number][at];
}

function eventsAt(number, turn) {
  const [now, before, judged] = [INDEX.outcomes[number][turn], outcomeBefore(number, turn), INDEX.judged[number][turn]];
  const events = [judged];
  if (turn && answered(judged) && passes(before) && fails(now)) events.push("broke");
  if (turn && answered(judged) && fails(before) && passes(now)) events.push("mended");
  return events;
}

function turnMatches(number, turn) {
  const { outcome, scope, change, instruction, event } = filters;
  const all = [INDEX.asked[number][turn]].flat().map((place) => INDEX.instructions[place]);
  return (!outcome || INDEX.outcomes[number][turn] === outcome) &&
    all.some((asked) => (!scope || asked?.[2] === scope) && (!change || asked?.[3] === change) && (!instruction || asked?.[0] === instruction)) &&
    (!event || eventsAt(number, turn).includes(event));
}

function matcher() {
  const { q, protocol, cell, model, dataset, task, broken, state } = filters;
  const words = (q || "").toLowerCase().split(/\s+/).filter(Boolean);
  const inText = words.map((word) => INDEX.instructions.map(([id, text]) => `${id} ${text}`.toLowerCase().includes(word)));
  const says = (number) => {
    const { label, dataset: name } = cellOf(number);
    const names = `${nameOf(number)} ${label} ${name} ${INDEX.key[number]}`.toLowerCase();
    return words.every((word, at) => names.includes(word) || INDEX.asked[number].flat().some((asked) => inText[at][asked]));
  };
  const byTurn = ["outcome", "scope", "change", "instruction", "event"].some((name) => filters[name]);
  return (number) => (!protocol || cellOf(number).protocol === protocol) && (!cell || INDEX.cell[number] === Number(cell)) && (!model || cellOf(number).model === model) &&
    (!dataset || cellOf(number).dataset === dataset) && (!task || taskOf(number) === task) &&
    (!broken || String(brokenAt(number)) === broken) && (!state || INDEX.state[number] === Number(state)) && says(number) &&
    (!byTurn || [...INDEX.outcomes[number]].some((_, turn) => turnMatches(number, turn)));
}

function options(values) {
  return [el("option", { value: "" }, "any"), ...values.map(([value, text]) => el("option", { value }, text))];
}

function drawFilters() {
  const unique = (values) => [...new Set(values)].map((value) => [value, value]);
  const ids = [...new Set(INDEX.instructions.map(([id]) => id))].sort();
  const longest = Math.max(0, ...INDEX.outcomes.map((letters) => letters.length));
  const told = (place) => [...new Set(INDEX.instructions.map((instruction) => instruction[place]))].filter(Boolean);
  const inOrder = (names) => names.sort((one, two) => SCOPES.indexOf(one) - SCOPES.indexOf(two) || one.localeCompare(two, "en"));
  const kind = (one) => one[2] && (one[3] ? "Scope" : "Strategy");
  const kinds = [...new Set(INDEX.instructions.map(kind))].filter(Boolean).sort().join(" or ");
  const outcomes = Object.entries(OUTCOMES).filter(([letter]) => letter !== "-" || INDEX.outcomes.some((letters) => letters.includes("-")));
  const choices = {
    protocol: ["Protocol", unique(CELLS.map((cell) => cell.protocol))],
    cell: ["Run", CELLS.map((cell, number) => [number, `${cell.label}, ${placeOf(cell)}`])],
    model: ["Model", unique(CELLS.map((cell) => cell.model))],
    dataset: ["Dataset", unique(CELLS.map((cell) => cell.dataset))],
    task: ["Task", INDEX.tasks.map((task) => [task, task])],
    broken: ["First broken", [["-1", "never"], ...Array.from({ length: longest }, (_, turn) => [turn, `at turn ${turn}`])]],
    outcome: ["Outcome", outcomes],
    scope: [kinds, unique(inOrder(told(2)))],
    change: ["Change", unique(["add", "remove", "modify"].filter((change) => told(3).includes(change)))],
    instruction: ["Instruction", ids.map((id) => [id, id])],
    event: ["Event", Object.entries(EVENTS)],
    state: ["Session", STATES.map((state, number) => [number, state])],
  };
  const search = el("input", { type: "search", name: "q", placeholder: "task, model, instruction …", autocomplete: "off", spellcheck: "false" });
  const dense = longest > 16;
  byId("list").classList.toggle("dense", dense);
  byId("list").style.setProperty("--strip", `${longest * (dense ? 7 : 18)}px`);
  byId("filters").replaceChildren(
    el("label", { class: "search" }, el("span", {}, "Search ", el("kbd", {}, "/")), search),
    ...Object.entries(choices).filter(([name, [, values]]) => values.length > (name === "protocol" ? 1 : 0)).map(([name, [title, values]]) => el("label", {}, el("span", {}, title), el("select", { name }, options(values)))),
    el("button", { type: "reset" }, "Clear"));
  for (const event of ["input", "change"]) byId("filters").addEventListener(event, readFilters);
  byId("filters").addEventListener("reset", () => setTimeout(readFilters));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("marks").replaceChildren(...outcomes.map(([letter, name]) => el("span", {}, mark(letter, "-", ""), name)),
    el("span", {}, mark("p", "s", ""), "skipped"));
}

function readFilters() {
  filters = Object.fromEntries([...new FormData(byId("filters"))].filter(([, value]) => value !== ""));
  history.replaceState(null, "", address({ list: "" }));
  applyFilters();
}

// A link that keeps the filters.
function address(parts) {
  const query = new URLSearchParams({ ...filters, ...parts }).toString().replace(/\blist=(?=&|$)/, "list");
  return `#${query}`;
}

function useFilters(wanted) {
  filters = Object.fromEntries(FILTERS.filter((name) => wanted.get(name)).map((name) => [name, wanted.get(name)]));
  for (const field of byId("filters").elements) if (field.name) field.value = filters[field.name] ?? "";
  applyFilters();
}

function applyFilters() {
  const matches = matcher();
  shown = INDEX.key.map((_, number) => number).filter(matches);
  selected = 0;
  byId("count").textContent = `${count(shown.length)} of ${plural(INDEX.key.length, "session")}`;
  byId("list").scrollTop = 0;
  drawRows();
}

// A turn's mark: colour and sign tell the outcome, an outline a skipped turn.
function mark(letter, judged, title) {
  return el("span", { class: `mark-${letter} turn-mark${judged === "s" ? " skipped" : ""}`, title: title || null }, judged === "s" ? "–" : GLYPHS[letter]);
}

const strip = (number) => el("span", { class: "strip", "aria-hidden": "true" },
  [...INDEX.outcomes[number]].map((letter, turn) => mark(letter, INDEX.judged[number][turn])));

function fate(number) {
  if (INDEX.state[number] === 1) return "errored";
  if (![...INDEX.outcomes[number]].some((letter) => letter !== "-")) return INDEX.verdicts?.[number] || "not scored";
  const [turn, [holds, breaks]] = [brokenAt(number), cellOf(number).fates];
  return turn < 0 ? holds : `${breaks} ${turn}`;
}

// All rows are as high as the longest task and the longest names of a cell need at this width, so that nothing is cut.
let tallest = { width: 0, height: 0 };
const rowHeight = () => {
  const list = byId("list");
  if (tallest.width !== list.clientWidth) tallest = { width: list.clientWidth, height: measuredRow(list) };
  list.style.setProperty("--row", `${tallest.height}px`);
  list.style.setProperty("--all", `${INDEX.key.length * tallest.height + 2}px`); // no higher than all sessions with the border
  return tallest.height;
};

function measuredRow(list) {
  const longest = (number) => nameOf(number).length;
  const numbers = CELLS.map((_, cell) => INDEX.cell.reduce((best, of, number) => (of === cell && (best < 0 || longest(number) > longest(best)) ? number : best), -1));
  list.style.setProperty("--row", "auto");
  byId("rows").replaceChildren(...numbers.filter((number) => number >= 0).map((number) => sessionRow(number, 0, 0)));
  const heights = [...byId("rows").children].map((row) => row.offsetHeight);
  return Math.max(matchMedia("(max-width: 720px)").matches ? 68 : 40, ...heights.map((height) => height + 10));
}

function drawRows() {
  const [list, rows] = [byId("list"), byId("rows")];
  const height = rowHeight();
  const first = Math.max(0, Math.floor(list.scrollTop / height) - 8);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / height) + 8);
  rows.style.height = `${shown.length * height}px`;
  rows.replaceChildren(...shown.slice(first, last).map((number, offset) => sessionRow(number, first + offset, height)));
  if (!shown.length) rows.replaceChildren(el("p", { class: "quiet" }, "No session matches these filters."));
  if (selected >= first && selected < last) list.setAttribute("aria-activedescendant", `row-${selected}`);
  else list.removeAttribute("aria-activedescendant");
}

function sessionRow(number, place, height) {
  const { label } = cellOf(number);
  const row = el("div", {
    class: "session", role: "option", id: `row-${place}`, "aria-selected": String(place === selected),
    "aria-posinset": place + 1, "aria-setsize": shown.length, "aria-label": `${nameOf(number)}, ${label}, ${fate(number)}`,
    on: { click: () => openSession(place) },
  }, el("span", { class: "task" }, nameOf(number)), el("span", { class: "model" }, label), el("span", { class: "dataset" }, placeOf(cellOf(number))),
    strip(number), el("span", { class: "fate" }, fate(number)));
  row.style.transform = `translateY(${place * height}px)`;
  return row;
}

function select(place) {
  if (!shown.length) return;
  selected = Math.min(Math.max(place, 0), shown.length - 1);
  const list = byId("list");
  const height = rowHeight();
  const top = selected * height;
  if (top < list.scrollTop) list.scrollTop = top;
  if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
  drawRows();
}

function openSession(place) {
  if (!(place in shown)) return;
  selected = place;
  location.hash = address({ session: INDEX.key[shown[place]] });
}
