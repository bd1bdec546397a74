"""Studies: a folder a paper, with its tasks, datasets, protocols, metrics, chapter and published figures.

No room outside names a study; files are found by their names (see `codechat.base.plugins`). No study imports another.
"""
