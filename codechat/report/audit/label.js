"use strict";
// All texts come from models and users: they are inserted as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const storageKey = "codechat-audit/" + data.sample;
const $ = (id) => document.getElementById(id);
const column = Object.fromEntries(data.columns.map((name, index) => [name, index]));
const first = data.first; // the label that is asked for first
const state = restore();
let revealed = false;

function restore() {
  const fresh = { index: 0, annotator: "", labels: {} };
  try {
    return Object.assign(fresh, JSON.parse(localStorage.getItem(storageKey) || "{}"));
  } catch (error) {
    complain(error);
    return fresh;
  }
}

function save() {
  try {
    localStorage.setItem(storageKey, JSON.stringify(state));
  } catch (error) {
    complain(error);
  }
}

function complain(error) {
  $("trouble").textContent = "This browser does not keep the labels (" + error.name + "): export them before you close the page.";
  $("trouble").hidden = false;
}

const value = (item, name) => item.row[column[name]];
const current = () => data.items[state.index];
const labelsOf = (item) => state.labels[value(item, "sample")] || {};
const wantsAdherence = (item) => Boolean(value(item, "judge_adherence")) && labelsOf(item).applicable === "yes";
const isDone = (item) => Boolean(labelsOf(item)[first]) && (!wantsAdherence(item) || Boolean(labelsOf(item).adherence));

function asked(button) {
  const [question, answer] = button.dataset.answer.split("=");
  return [question === "first" ? first : question, answer];
}

function element(kind, name, text) {
  const made = document.createElement(kind);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Characters that are invisible or turn the direction of text would hide what a line really says.
const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function codeCell(name, text, kind = "td") {
  const cell = element(kind, name);
  let from = 0;
  for (const match of text.matchAll(ODD)) {
    cell.append(text.slice(from, match.index));
    cell.append(element("span", "odd", "U+" + match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")));
    from = match.index + match[0].length;
  }
  cell.append(text.slice(from));
  return cell;
}

function half(row, lines, index, end, kind) {
  const there = index < end;
  const name = there ? kind : "void";
  row.append(element("td", "number " + name, there ? String(index + 1) : ""));
  row.append(codeCell("code " + name, there ? lines[index] : ""));
}

function table(headings) {
  const made = element("table");
  const columns = made.appendChild(element("colgroup"));
  for (const _ of headings) columns.append(element("col", "number"), element("col"));
  const head = made.createTHead().insertRow();
  for (const heading of headings) {
    const cell = element("th", "", heading);
    cell.colSpan = 2;
    cell.scope = "col";
    head.append(cell);
  }
  return made;
}

function codeAlone(item) {
  const made = table([data.heading]);
  const body = made.createTBody();
  const lines = item.before.split("\n");
  lines.forEach((_, index) => half(body.insertRow(), lines, index, lines.length, ""));
  return made;
}

function codeWithChange(item) {
  const made = table(["Before", "After"]);
  const body = made.createTBody();
  const before = item.before.split("\n");
  const after = item.after.split("\n");
  for (const [tag, i1, i2, j1, j2] of item.diff) {
    const same = tag === "equal";
    for (let step = 0; step < Math.max(i2 - i1, j2 - j1); step++) {
      const row = body.insertRow();
      half(row, before, i1 + step, i2, same ? "" : "gone");
      half(row, after, j1 + step, j2, same ? "" : "come");
    }
  }
  if (before.join("\n") === after.join("\n")) made.prepend(element("caption", "", "The code did not change."));
  return made;
}

function judgeFacts(item) {
  const facts = [[first + "?", value(item, "judge_" + first), value(item, "judge"), value(item, "judge_reason")]];
  if (value(item, "judge_adherence")) {
    facts.push(["followed?", value(item, "judge_adherence"), value(item, "adherence_judge"), value(item, "adherence_reason")]);
  }
  const nodes = [];
  for (const [question, verdict, by, reason] of facts) {
    nodes.push(element("dt", "", question), element("dd", "", verdict + " (by " + by + ")" + (reason ? ": " + reason : "")));
  }
  return nodes;
}

function show() {
  const item = current();
  const labels = labelsOf(item);
  const done = data.items.filter(isDone).length;
  $("bar").max = data.items.length;
  $("bar").value = done;
  $("progress").textContent = done + " of " + data.items.length + " labelled";
  $("place").textContent = "decision " + (state.index + 1) + " of " + data.items.length;
  $("task").textContent = value(item, "task_id") + ", turn " + value(item, "turn");
  $("type").textContent = item.kind;
  $("instruction").textContent = item.instruction;
  $("second").hidden = !wantsAdherence(item);
  for (const button of document.querySelectorAll("[data-answer]")) {
    const [question, answer] = asked(button);
    button.setAttribute("aria-pressed", String(labels[question] === answer));
  }
  for (const name of ["note", "edit"]) if (document.activeElement !== $(name)) $(name).value = labels[name] || "";
  $("reveal").disabled = !isDone(item);
  revealed = revealed && isDone(item);
  $("reveal").setAttribute("aria-expanded", String(revealed));
  $("judge").hidden = !revealed;
  $("judge").replaceChildren(...(revealed ? judgeFacts(item) : []));
  $("previous").disabled = state.index === 0;
  $("next").disabled = state.index === data.items.length - 1;
  [...$("rows").children].forEach((button, index) => {
    button.classList.toggle("done", isDone(data.items[index]));
    if (index === state.index) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  });
}

// What the judge read beside the answer or code, each text under its title.
function showRead() {
  $("read").replaceChildren(...current().read.map(([title, text]) => {
    const part = element("details");
    part.open = true;
    const whole = codeCell("", text || "(nothing)", "pre");
    whole.tabIndex = 0; // so that the keyboard can scroll it
    part.append(element("summary", "", title), whole);
    return part;
  }));
}

// The changed code would tell that the judge found the instruction applicable, so it comes after the first answer.
function showCode() {
  $("code").replaceChildren(wantsAdherence(current()) ? codeWithChange(current()) : codeAlone(current()));
}

function label(question, answer) {
  const item = current();
  if (question === "adherence" && !wantsAdherence(item)) return;
  const labels = { ...labelsOf(item), [question]: answer };
  if (labels[first] !== "yes") delete labels.adherence;
  state.labels[value(item, "sample")] = labels;
  save();
  show();
  if (question === first) showCode();
}

function clearLabels() {
  delete state.labels[value(current(), "sample")];
  save();
  show();
  showCode();
}

function go(index) {
  if (index < 0 || index >= data.items.length) return;
  state.index = index;
  revealed = false;
  save();
  show();
  showRead();
  showCode();
  $("rows").children[index].scrollIntoView({ block: "nearest" });
}

function goToOpen() {
  for (let step = 1; step <= data.items.length; step++) {
    const index = (state.index + step) % data.items.length;
    if (!isDone(data.items[index])) return go(index);
  }
}

function reveal() {
  if (!isDone(current())) return;
  revealed = !revealed;
  show();
}

function inert(text) {
  return /^'*[=+\-@\t\r]/.test(text) ? "'" + text : text;
}

function csv() {
  const lines = [data.columns];
  for (const item of data.items) {
    const row = [...item.row];
    const labels = labelsOf(item);
    for (const name of data.labels) row[column[name]] = labels[name] || "";
    row[column.annotator] = state.annotator;
    lines.push(row);
  }
  return lines.map((row) => row.map((cell) => '"' + inert(String(cell)).replaceAll('"', '""') + '"').join(",")).join("\n") + "\n";
}

function exportCsv() {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = "labels-" + (state.annotator.replace(/[^\p{L}\p{N}]+/gu, "-") || "anonymous") + ".csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const KEYS = {
  y: () => label(first, "yes"),
  n: () => label(first, "no"),
  a: () => label("adherence", "adhered"),
  v: () => label("adherence", "violated"),
  u: clearLabels,
  r: reveal,
  e: exportCsv,
  b: () => $("edit").focus(),
  c: () => $("note").focus(),
  ArrowLeft: () => go(state.index - 1),
  ArrowRight: () => go(state.index + 1),
  Enter: goToOpen,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const lines = event.target instanceof HTMLTextAreaElement;
  const typing = lines || event.target instanceof HTMLInputElement;
  if (typing && (event.key === "Escape" || (event.key === "Enter" && !lines))) {
    event.target.blur();
    event.preventDefault();
    return;
  }
  const action = KEYS[event.key];
  if (typing || !action || (event.key === "Enter" && event.target instanceof HTMLButtonElement)) return;
  event.preventDefault();
  action();
});
for (const button of document.querySelectorAll("[data-answer]")) {
  button.addEventListener("click", () => label(...asked(button)));
}
for (const name of ["note", "edit"]) {
  $(name).addEventListener("input", () => label(name, $(name).value));
}
$("better").hidden = !data.labels.includes("edit");
$("annotator").addEventListener("input", () => {
  state.annotator = $("annotator").value.trim();
  save();
});
$("previous").addEventListener("click", () => go(state.index - 1));
$("next").addEventListener("click", () => go(state.index + 1));
$("open").addEventListener("click", goToOpen);
$("reveal").addEventListener("click", reveal);
$("clear").addEventListener("click", clearLabels);
$("export").addEventListener("click", exportCsv);

data.items.forEach((_, index) => {
  const button = element("button", "", String(index + 1));
  button.type = "button";
  button.addEventListener("click", () => go(index));
  $("rows").append(button);
});
$("annotator").value = state.annotator;
$("ask-first").textContent = data.question;
$("code").setAttribute("aria-label", data.heading);
go(Math.min(state.index, data.items.length - 1));
