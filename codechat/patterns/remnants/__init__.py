"""Whether what was to go or to change is gone: not renamed, moved, disguised, or become something else."""
