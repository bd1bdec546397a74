"""Changes to code that the baselines make: refactorings of Python, edits of other languages, and defects."""
