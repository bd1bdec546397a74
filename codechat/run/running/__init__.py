"""From a cell to its session records."""
