"""The engine: from a validated config to a cell's folder, without a terminal.

`compose` turns overrides into a config; `run` runs it, for the command line, notebooks, tests and benchmarks.
"""
