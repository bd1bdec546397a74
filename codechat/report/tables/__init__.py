"""The report's tables: one module per question, each a function of the study. Values are raw; columns format them."""
