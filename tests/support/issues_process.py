"""Starts constructions of `recipe=issues` in processes of their own, without importing anew: each is a fork.

A line on standard input has the words of the command as JSON; it is answered by the process id, then by the status.
"""

import json
import os
import sys
from functools import cache

from codechat.run.construct.recipe import ConstructionConfig, compose_construction
from codechat.run.construct.run import construct
from support.construction import Quiet


@cache
def config_of(words: str) -> ConstructionConfig:
    return compose_construction(json.loads(words))[0]


def main() -> None:
    for line in sys.stdin:
        config = config_of(line)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = construct(config, {}, Quiet(), ["codechat"]).status
            finally:
                os._exit(status)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


main()
