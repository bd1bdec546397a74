"""CodeChat-Eval: ten-turn sessions of refinements that must keep a function working."""
