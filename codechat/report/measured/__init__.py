"""Any protocol's tables and figures, drawn from its own description of what it measures."""
