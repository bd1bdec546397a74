// What a coding agent did at a turn: its steps, its changes of other files, and how it ended. All of it is hostile text.

const LONGEST_HEAD = 160; // characters of a step that is not opened
const STEP_MARKS = { command: "$", edit: "±", tool: "›" };

const endOf = ({ ended, status }) => (ended === "exit" ? "ended by itself" : ended === "error" ? `ended with status ${status ?? "unknown"}` : `ended by the limit of ${ended}`);

// Beside a turn's number: an end that was not the agent's own, and an interruption.
const agentChips = (did) => did ? [
  did.ended !== "exit" && el("span", { class: "chip judged-v" }, did.ended === "error" ? "agent failed" : `limit: ${did.ended}`),
  did.attempts > 1 && el("span", { class: "chip", title: "An interruption ended an earlier attempt at this turn." }, `attempt ${did.attempts}`),
] : [];

function agentView(did, at) {
  const { steps = [], omitted, diff } = did;
  const parts = [did.ran_code ? "ran the code before the answer" : steps.length > 0 && "did not run the code before the answer",
    `${plural(did.lines_added ?? 0, "line")} added, ${count(did.lines_removed ?? 0)} removed`, did.elsewhere && `${plural(did.elsewhere, "other file")} changed`,
    [plural(did.requests ?? 0, "request"), did.unmetered && `${count(did.unmetered)} without usage`, did.replayed && `${count(did.replayed)} replayed`].filter(Boolean).join(", "),
    at && !did.remembers && "knew of earlier turns by the workspace alone", endOf(did)];
  return el("div", { class: "agent" }, el("p", { class: "quiet" }, parts.filter(Boolean).join(" · ")),
    steps.length ? el("ol", { class: "steps" }, steps.map((step) => el("li", {}, stepView(step)))) : el("p", { class: "quiet" }, "The agent's output names no step."),
    omitted ? el("p", { class: "quiet" }, `${plural(omitted, "further step")} not kept in the records.`) : "",
    diff ? el("details", { class: "step" }, el("summary", {}, "Changes of other files"), frame(`Changes of other files at turn ${at}`, diff.trimEnd().split("\n").map(patchRow))) : "");
}

function stepView([kind, text, output, status]) {
  const line = text.split("\n", 1)[0];
  const short = line.length > LONGEST_HEAD ? `${line.slice(0, LONGEST_HEAD)}…` : line;
  const head = [el("span", { class: "step-mark", title: kind }, STEP_MARKS[kind] ?? "·"), el("code", {}, short),
    known(status) ? el("span", { class: `chip${status ? " judged-v" : ""}` }, `exit ${status}`) : ""];
  if (!output && short === text) return el("p", { class: "step" }, head);
  return el("details", { class: "step" }, el("summary", {}, head),
    short === text ? "" : el("pre", { class: "value", tabindex: 0 }, text), output ? el("pre", { class: "value output", tabindex: 0 }, output) : "");
}

function patchRow(line) {
  const kind = /^(\+\+\+|---|@@|diff |index )/.test(line) ? "row quiet-row" : { "+": "row come", "-": "row gone" }[line[0]] ?? "row";
  return el("div", { class: kind }, el("span", { class: "text" }, line));
}
