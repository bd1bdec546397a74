"""Importing this loads all that a command needs before it does anything: for a process whose forks are commands."""

from codechat import compose

compose(["tracking=none"])
