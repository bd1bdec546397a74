"""A C program whose Makefile names a library too early."""

from codechat.studies.cab.starter.issue import MAINTAINER, USER, StarterIssue
from codechat.studies.cab.starter.repository import Commit

MAKEFILE = """\
CFLAGS ?= -O2 -Wall
LDFLAGS ?= -lm

pebble: pebble.o
\t$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

clean:
\trm -f pebble pebble.o
"""
PROGRAM = """\
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* How far a pebble flies that leaves the hand with this speed (m/s) at this angle (radians). */
static double reach(double speed, double angle) { return speed * speed * sin(2 * angle) / 9.81; }

int main(int count, char **words) {
    double speed = count > 1 ? atof(words[1]) : 10, angle = count > 2 ? atof(words[2]) : 0.7;
    printf("%.2f m\\n", reach(speed, angle));
    return 0;
}
"""
README = """\
# pebble

Says how far a thrown pebble flies: `make && ./pebble 12 0.7`.
"""

ISSUE = StarterIssue(
    name="pebble",
    language="c",
    commits=(
        Commit("Throw a pebble", {"Makefile": MAKEFILE, "pebble.c": PROGRAM, "README.md": README}),
        Commit("Name libraries behind the objects", {"Makefile": MAKEFILE.replace("LDFLAGS ?= -lm", "LDLIBS = -lm")}),
    ),
    asked_at=0,
    title="make ends with: undefined reference to `sin'",
    body="On a fresh Ubuntu, `make` compiles pebble.o and then stops with\n\n"
    "    pebble.c:(.text+0x3d): undefined reference to `sin'\n\n"
    "libm is installed. On my old machine it did build. What is wrong, and how can I build it now?",
    conditions=(
        "Explains that the linker meets the library before the object file in the Makefile",
        "Gives a command that builds without editing a file",
    ),
    thread=(
        (
            MAINTAINER,
            "Our Makefile has `-lm` in `LDFLAGS`, so the linker meets the library before the object file that needs "
            "it. Linkers that drop what nobody needs so far, as Ubuntu's does (`--as-needed`), then miss `sin`. This "
            "command builds it without editing a file: `make LDFLAGS= LDLIBS=-lm`.",
        ),
        (USER, "Builds now. Thank you!"),
    ),
)
