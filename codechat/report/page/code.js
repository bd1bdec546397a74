// Code as lines of pieces, coloured if it is Python, and the difference of two codes line by line.

const WORDS = "False None True and as assert async await break case class continue def del elif else except finally for " +
  "from global if import in is lambda match nonlocal not or pass raise return try while with yield";
const PIECES = new RegExp(
  [
    /(?<text>"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)/.source,
    /(?<remark>#[^\n]*)/.source,
    `(?<word>\\b(?:${WORDS.replaceAll(" ", "|")})\\b)`,
    /(?<number>\b\d[\w.]*)/.source,
  ].join("|"), "g");
const PLAIN_FROM = 200000; // characters: longer code is shown as it is
const MOST_PAIRS = 4e6; // lines times lines that are compared

// Lines, each a list of [class or "", text].
function coloured(code, language) {
  const lines = [[]];
  const push = (kind, text) => text.split("\n").forEach((part, number) => {
    if (number) lines.push([]);
    if (part) lines.at(-1).push([kind, part]);
  });
  let at = 0;
  for (const found of language === "python" && code.length < PLAIN_FROM ? code.matchAll(PIECES) : []) {
    push("", code.slice(at, found.index));
    push(Object.entries(found.groups).find(([, text]) => text !== undefined)[0], found[0]);
    at = found.index + found[0].length;
  }
  push("", code.slice(at));
  return lines;
}

// The shortest way from one list of lines to another: {sign: " ", "-" or "+", old, now} with line numbers from 0.
function difference(old, now) {
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const steps = [];
  for (let at = 0; at < head; at++) steps.push({ sign: " ", old: at, now: at });
  steps.push(...middle(old, now, head, old.length - tail, now.length - tail));
  for (let at = tail; at > 0; at--) steps.push({ sign: " ", old: old.length - at, now: now.length - at });
  return steps;
}

function middle(old, now, head, oldEnd, nowEnd) {
  const [rows, columns] = [oldEnd - head, nowEnd - head];
  const steps = [];
  let [i, j] = [0, 0];
  if (rows * columns <= MOST_PAIRS) {
    const wide = columns + 1;
    const common = new Uint32Array((rows + 1) * wide);
    for (let a = rows - 1; a >= 0; a--) {
      for (let b = columns - 1; b >= 0; b--) {
        common[a * wide + b] = old[head + a] === now[head + b] ? common[(a + 1) * wide + b + 1] + 1
          : Math.max(common[(a + 1) * wide + b], common[a * wide + b + 1]);
      }
    }
    while (i < rows && j < columns) {
      if (old[head + i] === now[head + j]) steps.push({ sign: " ", old: head + i++, now: head + j++ });
      else if (common[(i + 1) * wide + j] >= common[i * wide + j + 1]) steps.push({ sign: "-", old: head + i++ });
      else steps.push({ sign: "+", now: head + j++ });
    }
  }
  while (i < rows) steps.push({ sign: "-", old: head + i++ });
  while (j < columns) steps.push({ sign: "+", now: head + j++ });
  return steps;
}

// For lines that were changed in place, the stretch that differs: a map from step to [start, end].
function stretches(steps, old, now) {
  const marks = new Map();
  for (let at = 0; at < steps.length; at++) {
    let removed = 0;
    while (steps[at + removed]?.sign === "-") removed++;
    let added = 0;
    while (steps[at + removed + added]?.sign === "+") added++;
    if (removed && removed === added) {
      for (let pair = 0; pair < removed; pair++) {
        const [gone, come] = [steps[at + pair], steps[at + removed + pair]];
        const [one, other] = [old[gone.old], now[come.now]];
        let head = 0;
        while (head < one.length && head < other.length && one[head] === other[head]) head++;
        let tail = 0;
        while (tail < one.length - head && tail < other.length - head && one.at(-1 - tail) === other.at(-1 - tail)) tail++;
        if (head + tail < 0.3 * Math.max(one.length, other.length)) continue;
        marks.set(gone, [head, one.length - tail]);
        marks.set(come, [head, other.length - tail]);
      }
    }
    at += Math.max(removed + added - 1, 0);
  }
  return marks;
}

// One line's pieces; what lies between the marks is emphasised.
function pieces(line, mark) {
  const nodes = [];
  let at = 0;
  for (const [kind, text] of line) {
    const cuts = mark ? [0, mark[0] - at, mark[1] - at, text.length].map((cut) => Math.min(Math.max(cut, 0), text.length)) : [0, text.length];
    for (let part = 0; part + 1 < cuts.length; part++) {
      const shown = text.slice(cuts[part], cuts[part + 1]);
      const classes = [kind && `py-${kind}`, mark && part === 1 && "mark"].filter(Boolean).join(" ");
      if (shown) nodes.push(classes ? el("span", { class: classes }, shown) : shown);
    }
    at += text.length;
  }
  return nodes;
}

function codeRow(number, sign, line, mark) {
  const kind = { "-": "row gone", "+": "row come", " ": "row" }[sign];
  return el("div", { class: kind }, el("span", { class: "line-number", "aria-hidden": "true" }, `${number + 1}`),
    el("span", { class: "sign" }, sign), el("span", { class: "text" }, pieces(line, mark)));
}

const frame = (label, ...rows) =>
  el("div", { class: "code", tabindex: 0, role: "region", "aria-label": label }, el("div", { class: "sheet" }, ...rows));

const codeView = (code, label, language) => frame(label, coloured(code, language).map((line, number) => codeRow(number, " ", line)));

// Changes with three lines around them; longer stretches without a change are folded.
function diffView(before, code, label, language, same = "The code is the same as before.") {
  const [old, now] = [before.split("\n"), code.split("\n")];
  const steps = difference(old, now);
  if (steps.every((step) => step.sign === " ")) return el("p", { class: "quiet" }, same);
  const [oldLines, nowLines] = [coloured(before, language), coloured(code, language)];
  const marks = stretches(steps, old, now);
  const row = (step) => step.sign === "-" ? codeRow(step.old, "-", oldLines[step.old], marks.get(step))
    : codeRow(step.now, step.sign, nowLines[step.now], marks.get(step));
  return frame(label, stretchesOf(steps).flatMap(({ far, part }) => (far ? folds([part.map(row)]) : part.map(row))));
}

// The steps in stretches: those with a change within three lines, and those far from any.
function stretchesOf(steps) {
  const near = steps.map((_, at) => steps.slice(Math.max(0, at - 3), at + 4).some((step) => step.sign !== " "));
  const found = [];
  for (let at = 0; at < steps.length;) {
    let end = at;
    while (end < steps.length && !near[end]) end++;
    const far = end - at > 2;
    if (!far) end = at + 1;
    found.push({ far, part: steps.slice(at, end) });
    at = end;
  }
  return found;
}

// A button in place of unchanged lines, in each of several columns: one opens all.
function folds(columns) {
  const buttons = columns.map((rows) => el("button", { type: "button", class: "fold" }, `${rows.length} unchanged lines`));
  const open = () => buttons.forEach((button, place) => button.replaceWith(...columns[place]));
  buttons.forEach((button) => button.addEventListener("click", open));
  return buttons;
}
