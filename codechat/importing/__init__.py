"""Import published completions as recorded sessions, so that a replay can be compared with results from elsewhere.

Values that a source lacks stay null or zero; nothing is invented.
"""
