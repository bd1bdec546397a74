// What is shown follows the address; keys and buttons only change the address, or the focus.

const KEYS = [
  ["/", "search the sessions"], ["j  k", "next and previous session of the list, or turn of a session"],
  ["Enter", "open the session"], ["→  ←", "next and previous session, while one is open"], ["Esc", "back to the list"],
  ["d", "dark or light"], ["?", "these keys"],
];

function drawKeys() {
  const close = el("button", { type: "button", on: { click: () => byId("keys").close() } }, "Close");
  byId("keys").replaceChildren(el("h2", { id: "keys-title" }, "Keys"),
    el("dl", {}, KEYS.flatMap(([key, does]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, does)])), close);
  byId("keys-button").addEventListener("click", () => byId("keys").showModal());
}

const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function showTheme() {
  byId("theme").ariaPressed = String(dark());
}

function turnTheme() {
  document.documentElement.dataset.theme = dark() ? "light" : "dark";
  showTheme();
}

const parameters = () => new URLSearchParams(location.hash.slice(1));

async function route() {
  const wanted = parameters();
  const key = wanted.get("session");
  if (INDEX && (wanted.has("list") || FILTERS.some((name) => wanted.get(name)))) {
    const place = selected;
    if (FILTERS.some((name) => (wanted.get(name) ?? "") !== (filters[name] ?? ""))) useFilters(wanted);
    else selected = place;
  }
  if (key && INDEX) await showSession(key, wanted.get("turn"));
  else if (!key) showReport(wanted.has("list"));
}

async function showSession(key, turn) {
  const number = INDEX.key.indexOf(key);
  if (number < 0) {
    showReport(true);
    byId("count").textContent = `This page holds no session ${key}.`;
    return;
  }
  if (shown.indexOf(number) < 0) useFilters(new URLSearchParams());
  selected = shown.indexOf(number);
  await drawDialogue(number);
  byId("report").hidden = true;
  byId("dialogue").hidden = false;
  if (turn !== null && byId(`turn-${turn}`)) focusTurn(turn);
  else {
    byId("dialogue").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function showReport(toList) {
  const left = !byId("dialogue").hidden;
  byId("dialogue").hidden = true;
  byId("report").hidden = false;
  if (!INDEX) return;
  drawRows();
  if (left && !toList) byId(location.hash.slice(1))?.scrollIntoView();
  if (toList) {
    byId("sessions").scrollIntoView({ block: "start" });
    byId("list").focus({ preventScroll: true });
    if (left) select(selected);
  }
}

const typing = (target) => target.closest?.("input, select, textarea, dialog") !== null;

function listKey(event) {
  const list = byId("list");
  const onList = event.target === list;
  const page = Math.floor(list.clientHeight / rowHeight()) - 1;
  const steps = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -shown.length, End: shown.length };
  if (onList && event.key in steps) select(selected + steps[event.key]);
  else if (onList && event.key === "Enter") openSession(selected);
  else if (event.key === "j" || event.key === "k") {
    list.focus();
    select(selected);
  } else return false;
  return true;
}

function dialogueKey(event) {
  const current = Number(document.activeElement.closest(".turn")?.id.slice("turn-".length) ?? -1);
  if (event.key === "j") focusTurn(current + 1);
  else if (event.key === "k") focusTurn(Math.max(current - 1, 0));
  else if (["ArrowRight", "ArrowLeft"].includes(event.key) && !event.target.closest(".code, pre")) siblingSession(event.key === "ArrowRight" ? 1 : -1);
  else if (event.key === "Escape") location.hash = address({ list: "" });
  else return false;
  return true;
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !INDEX) return;
  if (typing(event.target)) {
    if (event.key === "Escape" && !event.target.closest("dialog")) {
      event.preventDefault(); // it would empty the search
      byId("list").focus();
    }
    return;
  }
  const anywhere = { "/": search, "?": () => byId("keys").showModal(), d: turnTheme };
  if (event.key in anywhere) anywhere[event.key]();
  else if (!(byId("dialogue").hidden ? listKey(event) : dialogueKey(event))) return;
  event.preventDefault();
}

function search() {
  if (!byId("dialogue").hidden) {
    history.pushState(null, "", address({ list: "" }));
    showReport(false);
  }
  byId("filters").elements.q.focus();
}

async function start() {
  drawFindings();
  drawSections();
  drawKeys();
  showTheme();
  const sections = [...REPORT.sections.filter(({ link }) => link), { key: "sessions", link: "Sessions" }];
  byId("sections").append(...sections.map(({ key, link }) => el("a", { href: `#${key}` }, link)));
  byId("theme").addEventListener("click", turnTheme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
  addEventListener("keydown", onKey);
  addEventListener("hashchange", route);
  addEventListener("resize", () => INDEX && drawRows());
  byId("list").addEventListener("scroll", () => requestAnimationFrame(drawRows), { passive: true });
  if (!("DecompressionStream" in globalThis)) {
    byId("count").textContent = "This browser is too old to unpack the sessions.";
    return;
  }
  INDEX = await unpacked("index");
  drawFilters();
  useFilters(parameters());
  document.documentElement.dataset.ready = Math.round(performance.now());
  await route();
  await drawSummary();
}

start();
