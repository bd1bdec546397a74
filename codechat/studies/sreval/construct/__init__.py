"""How tasks of SR-Eval's kind are made: one requirement becomes several, each with a program and tests of its own."""
