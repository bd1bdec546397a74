"""Who answers a cell: its endpoints, and the model servers that codechat starts for it."""
