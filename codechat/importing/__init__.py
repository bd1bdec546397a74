"""Published completions as recorded sessions, so that a replay can be held to results that nobody here produced.

What a source does not tell stays null or zero; nothing is invented.
"""
