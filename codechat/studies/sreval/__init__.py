"""SR-Eval: requirements that come step by step, for functions and repositories in Python and Java."""
