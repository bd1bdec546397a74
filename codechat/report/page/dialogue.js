// One session, turn by turn. Its body is decoded when it is opened.

const decoded = new Map(); // the few chunks that were opened last

async function bodyOf(number) {
  let chunk = INDEX.starts.length - 1;
  while (INDEX.starts[chunk] > number) chunk--;
  if (!decoded.has(chunk)) {
    if (decoded.size > 3) decoded.delete(decoded.keys().next().value);
    decoded.set(chunk, await unpacked(`chunk-${chunk}`));
  }
  return decoded.get(chunk)[number - INDEX.starts[chunk]];
}

// A text, or the slice of a reply that it is.
const textOf = (stored, turns) => (Array.isArray(stored) ? turns[stored[0]].reply.slice(stored[1], stored[2]) : stored ?? null);

function requestsOf(turns) {
  let before = [];
  return turns.map((turn) => {
    if (!turn.request) return null;
    before = [...before.slice(0, turn.keep), ...turn.request.map(([role, content]) => [role, textOf(content, turns)])];
    return before;
  });
}

async function drawDialogue(number) {
  const place = byId("dialogue");
  const body = await bodyOf(number);
  if (parameters().get("session") !== INDEX.key[number]) return; // another one was opened meanwhile
  const requests = requestsOf(body.turns);
  const codes = body.turns.map((turn) => textOf(turn.code, body.turns));
  const beside = await besideCards(number, body);
  const cards = beside ?? body.turns.map((turn, at) => {
    const before = codes.slice(0, at).findLast((code, turn) => known(code) && !rolledBack(number, turn)) ?? null;
    return turnCard({ number, turn, at, before, language: body.language ?? "python", code: codes[at], request: requests[at], key: INDEX.key[number] });
  });
  place.classList.toggle("wide", beside !== null);
  place.replaceChildren(dialogueHead(number, body), turnRail(number), ...cards,
    known(body.error) ? el("div", { class: "turn errored" }, el("h2", {}, "The session ended in an error"), el("pre", { class: "value" }, body.error)) : "");
  const seen = new IntersectionObserver(tellTurn, { rootMargin: "-110px 0px -70% 0px" });
  cards.filter((card) => card.id).forEach((card) => seen.observe(card));
}

// Marks in the rail which turn is being read.
function tellTurn(entries) {
  for (const entry of entries.filter((each) => each.isIntersecting)) {
    for (const button of document.querySelectorAll(".rail button")) {
      button.ariaCurrent = button.dataset.turn === entry.target.id ? "true" : null;
    }
  }
}

function dialogueHead(number, body) {
  const { label, dataset, setting } = cellOf(number);
  const sibling = (step, text) => el("button", { type: "button", disabled: !(selected + step in shown), on: { click: () => siblingSession(step) } }, text);
  return el("header", { class: "dialogue-head" },
    el("p", { class: "controls" }, el("a", { class: "button", href: address({ list: "" }) }, "‹ All sessions"), el("span", {}, sibling(-1, "← Previous"), sibling(1, "Next →"))),
    el("h1", { id: "dialogue-title" }, taskOf(number)),
    el("p", {}, el("strong", {}, label), ` on ${[dataset, setting].filter(Boolean).join(", ")}: ${fate(number)}${INDEX.state[number] === 2 ? "; the conversation outgrew the model" : ""}. `,
      el("a", { href: `#${new URLSearchParams({ dataset, task: taskOf(number) })}&list` }, "This task in every run")),
    besideChoice(number, body),
    el("p", { class: "quiet" }, `session ${body.session} · seed ${body.seed} · ${body.protocol}`));
}

function turnRail(number) {
  return el("nav", { class: "rail", "aria-label": "Turns" }, [...INDEX.outcomes[number]].map((letter, turn) => {
    const title = `Turn ${turn}: ${OUTCOMES[letter]}`;
    const click = () => focusTurn(turn);
    return el("button", { type: "button", "data-turn": `turn-${turn}`, "aria-label": title, title, on: { click } }, `${turn}`, mark(letter, INDEX.judged[number][turn]));
  }));
}

function focusTurn(turn) {
  const card = byId(`turn-${turn}`);
  if (!card) return;
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "start" });
  history.replaceState(null, "", address({ session: card.dataset.session, turn, ...besideNow() }));
}

const SHARED = "The program shared a process with its tests, so it could have forged this verdict: read a surprising pass.";

function turnCard(part) {
  const { number, turn, at, code, before } = part;
  const [judged, outcome] = [INDEX.judged[number][at], INDEX.outcomes[number][at]];
  const further = turn.further ?? []; // instructions after the first, each with its judgement
  const instructions = [turn.instruction, ...further.map(([place]) => place)].filter(known).map((place) => INDEX.instructions[place]);
  const judgements = [turn.adherence, ...further.map(([, adherence]) => adherence)].filter(known);
  const events = eventsAt(number, at);
  const chips = [
    instructions.map((one) => el("span", { class: "chip" }, one.slice(2).filter(Boolean).join(" / "))),
    typeof turn.more?.round === "string" && el("span", { class: "chip" }, turn.more.round),
    Object.keys(turn.more ?? {}).filter((name) => turn.more[name] === true).map((name) => el("span", { class: "chip" }, name)),
    el("span", { class: `chip outcome-${passes(outcome) ? "pass" : fails(outcome) ? "fail" : "none"}` }, OUTCOMES[outcome]),
    events.includes("broke") && el("span", { class: "chip broke" }, "broke here"),
    events.includes("mended") && el("span", { class: "chip mended" }, "mended here"),
    rolledBack(number, at) && el("span", { class: "chip broke", title: "The code before stands." }, "rolled back"),
    judged === "s" && el("span", { class: "chip" }, "skipped"), judged === "o" && el("span", { class: "chip" }, "not asked"),
    turn.adherence && el("span", { class: `chip judged-${judged}` }, EVENTS[judged] ?? turn.adherence[0]),
    agentChips(turn.agent),
    known(turn.inside) && el("span", { class: "chip inside", title: SHARED }, ["decided inside", turn.inside].filter(Boolean).join(": ")),
  ];
  return el("article", { class: "turn", id: `turn-${at}`, tabindex: -1, "aria-labelledby": `turn-${at}-title`, "data-session": part.key },
    el("header", {}, el("h2", { id: `turn-${at}-title` }, `Turn ${at}`), chips),
    asked(part, instructions, judged),
    turn.failure && failureView(turn.failure, events.includes("broke") || at === 0),
    turn.gate && triesView(turn.gate),
    judgements.map(([verdict, by, reason], place) => el("p", { class: "judge" }, el("strong", {}, `${further.length ? `${place + 1}. ` : ""}${verdict} `), `by ${by}: ${reason || "no reason given"}`)),
    checksView(turn.more?.checks),
    judged === "s" ? "" : views(part, known(code) && known(before)), candidatesView(turn.candidates || []), judged === "s" ? "" : usageView(turn));
}

function asked({ turn, request, at }, instructions, judged) {
  if (judged === "s") return el("p", { class: "quiet" }, "No instruction of this type fitted the code; it stays as it was.");
  const said = request?.at(-1)?.[1];
  const whole = said && el("details", { class: "asked", open: at === 0 && said.length < 1500 }, el("summary", {}, at ? "The request" : "The task"), el("pre", { class: "prose" }, said));
  if (!instructions.length) return whole;
  const [[, text, , change]] = instructions;
  const more = !change && said && said.trim() !== text.trim(); // a verifiable instruction in other words, or feedback on one
  return [...instructions.map(([id, words]) => el("blockquote", { class: "asked" }, el("p", {}, words), el("cite", {}, id))), more ? whole : null];
}

// What was tested at a turn, where its protocol tells each of its checks.
function checksView(checks) {
  if (!Array.isArray(checks) || !checks.length || checks.some((check) => typeof check?.passed !== "boolean")) return null;
  const passed = checks.filter((check) => check.passed).length;
  return el("details", { class: "checks", open: passed < checks.length }, el("summary", {}, `${passed} of ${plural(checks.length, "check")} passed`),
    el("ul", {}, checks.map((check) => el("li", { class: check.passed ? "met" : "unmet" },
      el("span", { "aria-hidden": "true" }, check.passed ? "✓ " : "× "), el("strong", {}, check.strategy || check.id),
      check.asked === false ? el("span", { class: "quiet" }, " not asked yet") : "",
      check.decided === "inside" ? el("span", { class: "quiet", title: SHARED }, " decided inside") : "",
      check.passed ? "" : ` ${check.reason || "failed"}`))));
}

// The replies that tests between turns refused, each with the reason.
function triesView({ tries, accepted, rolled_back }) {
  const refused = accepted ? tries.slice(0, -1) : tries;
  return el("details", { class: "tries", open: rolled_back }, el("summary", {}, `Asked again: ${refused.length} of ${tries.length} replies refused`),
    refused.map((each, at) => el("div", {}, el("h3", {}, `Reply ${at + 1}`), each.failure && failureView(each.failure, false),
      el("pre", { class: "prose reply", tabindex: 0 }, each.reply))));
}

function failureView(failure, open) {
  const test = known(failure.index) ? `${failure.suite || ""} test ${failure.index}` : failure.suite;
  const parts = ["input", "expected", "actual", "exception", "stdout"].filter((name) => known(failure[name]));
  return el("details", { class: "failure", open }, el("summary", {}, [failure.reason, test].filter(Boolean).join(" · ")),
    parts.length ? el("dl", {}, parts.flatMap((name) => [el("dt", {}, name), el("dd", {}, el("pre", { class: "value", tabindex: 0 }, failure[name]))])) : "");
}

// Changes, code, reply and request: one at a time, drawn when it is chosen.
function views({ turn, at, before, code, request, language }, compared) {
  const panel = el("div", { class: "panel" });
  const draw = {
    Changes: compared && (() => diffView(before, code, `Changes of turn ${at}`, language)),
    Code: known(code) && (() => codeView(code, `Code of turn ${at}`, language)),
    Steps: turn.agent && (() => agentView(turn.agent, at)),
    Reply: known(turn.reply) && (() => el("pre", { class: "prose reply", tabindex: 0 }, turn.reply)),
    Reasoning: known(turn.reasoning) && (() => el("pre", { class: "prose reply", tabindex: 0 }, turn.reasoning)),
    Request: request && (() => el("div", {}, request.map(([role, content]) => el("div", { class: `message ${role}` }, el("h3", {}, role), el("pre", { class: "prose" }, content))))),
  };
  const buttons = Object.entries(draw).filter(([, make]) => make).map(([name, make]) => {
    const button = el("button", { type: "button", "aria-pressed": "false" }, name);
    button.addEventListener("click", () => {
      buttons.forEach((other) => { other.ariaPressed = String(other === button); });
      panel.replaceChildren(make());
    });
    return button;
  });
  buttons[0]?.click();
  return buttons.length ? el("div", { class: "views" }, el("div", { class: "tabs", role: "group", "aria-label": `Turn ${at} shows` }, buttons), panel) : "";
}

function candidatesView(candidates) {
  if (!candidates.length) return "";
  const words = (applicable) => (applicable === null ? "undecided" : applicable ? "applicable" : "not applicable");
  const texts = new Map(INDEX.instructions.map(([id, text]) => [id, text]));
  return el("details", { class: "candidates" }, el("summary", {}, `${plural(candidates.length, "candidate")} tried`),
    el("ol", {}, candidates.map(([id, applicable, by, other]) => el("li", {}, el("code", {}, id), ` ${words(applicable)}, by ${by}`, other ? [", not asked beside ", el("code", {}, other)] : "", texts.has(id) ? el("span", { class: "quiet" }, ` ${texts.get(id)}`) : ""))));
}

function usageView(turn) {
  const [input, output, cached] = turn.tokens;
  const [latency, cpu] = turn.seconds;
  const roles = Object.entries(turn.more?.usage_by_role ?? {});
  const parts = [`${count(input)} tokens in${cached ? ` (${count(cached)} cached)` : ""}`, `${count(output)} out`,
    turn.judge_tokens.some(Boolean) && `judge ${count(turn.judge_tokens[0])} in, ${count(turn.judge_tokens[1])} out`,
    ...roles.map(([role, used]) => `${role} ${count(used.input_tokens)} in, ${count(used.output_tokens)} out`),
    latency && `${fixed(latency)} s`, cpu && `tests ${fixed(cpu, 3)} s of CPU`, turn.finish && `finish: ${turn.finish}`];
  return el("footer", {}, el("p", { class: "quiet" }, parts.filter(Boolean).join(" · ")),
    otherFields(turn.more ?? {}));
}

// What the turn's protocol adds and nothing else shows.
function otherFields({ checks, round, usage_by_role, ...rest }) {
  if (typeof round !== "string" && known(round)) rest.round = round;
  if (checks && !checksView(checks)) rest.checks = checks;
  for (const name of Object.keys(rest)) if (typeof rest[name] === "boolean") delete rest[name]; // what is true is a chip
  return Object.keys(rest).length ? el("details", {}, el("summary", {}, "Other fields"), el("pre", { class: "value", tabindex: 0 }, JSON.stringify(rest, null, 1))) : "";
}

function siblingSession(step) {
  const place = selected + step;
  if (!(place in shown)) return;
  selected = place;
  history.replaceState(null, "", address({ session: INDEX.key[shown[place]] }));
  route();
}
