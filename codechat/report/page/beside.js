// Two dialogues of one task side by side, turn by turn: two models, two samples, or the official verdicts and ours.

const OFFICIAL = "official";
const LETTER = { pass: "p", fail: "f", timeout: "t", no_code: "n", syntax_error: "s", crash: "c" };

// The address's part that says what stands beside a session.
const besideNow = () => (parameters().get("beside") ? { beside: parameters().get("beside") } : {});

function besideChoice(number, body) {
  const peers = INDEX.key.map((_, other) => other).filter((other) => other !== number && INDEX.task[other] === INDEX.task[number]);
  const official = body.turns.some((turn) => known(turn.more?.official?.passed));
  const entries = [["", "nothing"], ...(official ? [[OFFICIAL, "the official verdicts"]] : []), ...peers.map((other) => [INDEX.key[other], sideName(other)])];
  if (entries.length === 1) return "";
  const choice = el("select", { name: "beside" }, entries.map(([value, text]) => el("option", { value, selected: value === (besideNow().beside ?? "") }, text)));
  choice.addEventListener("change", () => { location.hash = address({ session: INDEX.key[number], ...(choice.value ? { beside: choice.value } : {}) }); });
  return el("p", {}, el("label", {}, "Beside it: ", choice));
}

const sideName = (number) => [cellOf(number).label, placeOf(cellOf(number)), INDEX.seeds && `seed ${INDEX.seeds[number]}`].filter(Boolean).join(", ");

// One side: its name, and of each turn the outcome's letter, the reason, what was asked, the judge's verdict, the text
// that is compared (the code, or the reply without one), and whether the text is code.
function sideOf(number, body) {
  const turns = body.turns.map((turn, at) => {
    const code = textOf(turn.code, body.turns);
    const all = [[turn.instruction, turn.adherence], ...(turn.further ?? [])];
    return {
      letter: INDEX.outcomes[number][at], reason: turn.failure?.reason,
      asked: all.map(([place]) => INDEX.instructions[place]?.[1]).filter(known).join(" ") || undefined,
      judged: all.map(([, adherence]) => adherence?.[0]).filter(known).join(", ") || undefined, text: code ?? turn.reply ?? null, isCode: known(code),
    };
  });
  return { name: sideName(number), turns };
}

function officialSide(ours, body) {
  const turns = body.turns.map((turn, at) => {
    const { passed, outcome, reason } = turn.more?.official ?? {};
    return { ...ours.turns[at], letter: LETTER[outcome] ?? (known(passed) ? (passed ? "p" : "f") : "-"), reason, official: true };
  });
  return { name: "official verdicts", turns };
}

async function besideCards(number, body) {
  const { beside } = besideNow();
  const ours = sideOf(number, body);
  const other = INDEX.key.indexOf(beside);
  if (beside !== OFFICIAL && other < 0) return null;
  const theirs = beside === OFFICIAL ? officialSide(ours, body) : sideOf(other, await bodyOf(other));
  const most = Math.max(ours.turns.length, theirs.turns.length);
  const cards = Array.from({ length: most }, (_, at) => besideCard(at, [theirs, ours], INDEX.key[number], body.language ?? "python"));
  const apart = cards.flatMap((card, at) => (card.classList.contains("differing") ? [at] : []));
  return [el("p", { class: "quiet" }, apart.length ? `They differ at ${apart.length > 1 ? "turns" : "turn"} ${apart.join(", ")} of ${most}.` : "They are alike at every turn."), ...cards];
}

function besideCard(at, sides, key, language) {
  const [left, right] = sides.map(({ turns }) => turns[at]);
  const differs = {
    "one has no such turn": !left || !right,
    "verdicts differ": left && right && passes(left.letter) !== passes(right.letter) && left.letter !== "-" && right.letter !== "-",
    "other instruction": left && right && left.asked !== right.asked,
    "other judgement": left && right && (left.judged ?? null) !== (right.judged ?? null),
    "other reason": left && right && !left.official && left.letter === right.letter && (left.reason ?? null) !== (right.reason ?? null),
    "other code": left && right && left.text !== right.text && (left.isCode || right.isCode),
    "other reply": left && right && left.text !== right.text && !left.isCode && !right.isCode,
  };
  const marks = Object.entries(differs).filter(([, so]) => so).map(([name]) => el("span", { class: "chip differs" }, name));
  const told = left?.isCode && right?.isCode ? language : "";
  const codes = known(left?.text) && known(right?.text) ? pairView([left.text, right.text], at, sides, told)
    : [left, right].map((side, place) => (known(side?.text) ? codeView(side.text, `Text of turn ${at}, ${sides[place].name}`, side.isCode ? language : "") : el("p", { class: "quiet" }, "no reply")));
  return el("article", { class: `turn${marks.length ? " differing" : ""}`, id: `turn-${at}`, tabindex: -1, "aria-labelledby": `turn-${at}-title`, "data-session": key },
    el("header", {}, el("h2", { id: `turn-${at}-title` }, `Turn ${at}`), marks.length ? marks : el("span", { class: "chip" }, "alike")),
    el("div", { class: "beside" }, [left, right].map((side, place) => sideHead(side, sides[place].name)), codes));
}

function sideHead(side, name) {
  return el("div", {}, el("h3", {}, name, " ", side ? el("span", { class: `chip outcome-${passes(side.letter) ? "pass" : fails(side.letter) ? "fail" : "none"}` }, OUTCOMES[side.letter]) : ""),
    side?.judged ? el("p", { class: "quiet" }, side.judged) : "", side?.asked ? el("p", { class: "quiet" }, side.asked) : "", side?.reason ? el("p", { class: "quiet" }, side.reason) : "");
}

// Two texts in two columns: lines of one stand beside those of the other, and blanks where it has none. What both have is
// folded away but for three lines around a difference. On a narrow screen it is one column, first the old lines.
function pairView([one, other], at, sides, language) {
  if (matchMedia("(max-width: 720px)").matches) {
    return [el("p", { class: "quiet" }, `− ${sides[0].name}; + ${sides[1].name}`), diffView(one, other, `Differences of turn ${at}`, language, "Both are the same.")];
  }
  const [old, now] = [one.split("\n"), other.split("\n")];
  const steps = difference(old, now);
  const marks = stretches(steps, old, now);
  const [oldLines, nowLines] = [coloured(one, language), coloured(other, language)];
  const columns = [[], []];
  const level = () => {
    const most = Math.max(columns[0].length, columns[1].length);
    for (const rows of columns) while (rows.length < most) rows.push(el("div", { class: "row" }));
  };
  const rowsOf = (step) => [
    step.sign !== "+" && codeRow(step.old, step.sign, oldLines[step.old], marks.get(step)),
    step.sign !== "-" && codeRow(step.now, step.sign, nowLines[step.now], marks.get(step)),
  ];
  for (const { far, part } of stretchesOf(steps)) {
    if (part[0].sign === " ") level();
    const rows = part.map(rowsOf);
    if (far) folds([0, 1].map((place) => rows.map((pair) => pair[place]))).forEach((button, place) => columns[place].push(button));
    else for (const [place, column] of columns.entries()) column.push(...rows.map((pair) => pair[place]).filter(Boolean));
  }
  level();
  return columns.map((rows, place) => frame(`Text of turn ${at}, ${sides[place].name}`, rows));
}
