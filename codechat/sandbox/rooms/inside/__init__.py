"""The resident process of a worktree: standard library and the sandbox's `isolate` only.

It starts a fresh shell for every command, bounds it, ends all processes of the command, and reports the end.
"""
