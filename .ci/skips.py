"""Counts the skipped tests in pytest's logs by reason, and fails if a reason is new or met more often than kept.

The list beside this file has a line for each reason: the most tests that may give it, and how it begins. Reasons that
name CODECHAT_TEST_DATA are allowed if there is no such folder.
"""

import os
import re
import sys
from collections import Counter
from pathlib import Path

SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] \S+: (.*)", re.MULTILINE)


def main(logs: list[str]) -> int:
    """Print the counts and what is wrong with them; 1 if something is."""
    kept = {}
    for line in Path(__file__).with_name("skips.txt").read_text(encoding="utf-8").splitlines():
        most, _, reason = line.partition(" ")
        kept[reason] = int(most)
    met: Counter[str] = Counter()
    for log in logs:
        for number, reason in SKIPPED.findall(Path(log).read_text(encoding="utf-8", errors="replace")):
            if "CODECHAT_TEST_DATA" in reason and "CODECHAT_TEST_DATA" not in os.environ:
                continue
            met[next((begun for begun in kept if reason.startswith(begun)), reason)] += int(number)
    for reason, number in met.most_common():
        more = "" if number <= kept.get(reason, 0) else f"  <- at most {kept.get(reason, 0)} in .ci/skips.txt"
        print(f"skipped {number}: {reason}{more}")
    return int(any(number > kept.get(reason, 0) for reason, number in met.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
