"""The report's figures: one module per question. Each function draws a study into a matplotlib figure."""
