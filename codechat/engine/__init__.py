"""The engine: from a validated config to a cell's folder, without a terminal.

`run` is what the command line, notebooks, tests and benchmarks call; `compose` makes what it runs.
"""
