"""A JavaScript library whose README names an option that it does not read."""

from codechat.studies.cab.starter.issue import MAINTAINER, USER, StarterIssue
from codechat.studies.cab.starter.repository import Commit

README = """\
# kettle

Asks a kettle for its temperature until the water boils.

    const { watch } = require("kettle");
    watch(kettle, { timeout: 30 }).then(() => console.log("tea!"));

`timeout` is the time after which it gives up.
"""
SOURCE = """\
"use strict";

const DEFAULTS = { timeoutMs: 60000, everyMs: 500, celsius: 100 };

async function watch(kettle, options = {}) {
  const { timeoutMs, everyMs, celsius } = { ...DEFAULTS, ...options };
  const end = Date.now() + timeoutMs;
  while (Date.now() < end) {
    if ((await kettle.temperature()) >= celsius) return true;
    await new Promise((done) => setTimeout(done, everyMs));
  }
  throw new Error("the kettle did not boil in time");
}

module.exports = { watch };
"""
PACKAGE = """\
{
  "name": "kettle",
  "version": "1.0.0",
  "main": "src/index.js"
}
"""

ISSUE = StarterIssue(
    name="kettle",
    language="javascript",
    commits=(
        Commit("Watch a kettle", {"package.json": PACKAGE, "src/index.js": SOURCE}),
        Commit("Say how to use it", {"README.md": README}),
        Commit(
            "Name the option as it is read",
            {"README.md": README.replace("timeout: 30", "timeoutMs: 30000").replace("`timeout`", "`timeoutMs`")},
        ),
    ),
    asked_at=1,
    title="The timeout is ignored",
    body="I call `watch(kettle, { timeout: 30 })` as in the README, and with a broken kettle it gives up after a "
    "minute rather than after half of one. How do I set it, and can I make it ask less often?",
    conditions=(
        "Names timeoutMs as the option that is read",
        "Says that the value is in milliseconds",
        "Names everyMs as the option for the time between questions",
    ),
    thread=(
        (MAINTAINER, "The README is wrong there. `timeoutMs` is the option that is read; other names are ignored."),
        (USER, "I now have `timeoutMs: 30`, and it gives up at once."),
        (MAINTAINER, "The value is in milliseconds, as its name says: `timeoutMs: 30000` for half a minute."),
        (USER, "Right. And asking less often?"),
        (
            MAINTAINER,
            "`everyMs` is the option for the time between two questions, 500 unless you set it: "
            "`watch(kettle, { timeoutMs: 30000, everyMs: 2000 })`.",
        ),
        (USER, "Perfect."),
    ),
)
