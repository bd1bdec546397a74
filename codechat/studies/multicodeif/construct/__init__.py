"""How tasks of MultiCodeIF's kind are made and checked (the paper's section III)."""
