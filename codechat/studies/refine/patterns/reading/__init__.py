"""Code read once: its tokens, its syntax tree, and the views on them that all patterns share."""
