"""The commands: one file each, imported only when it is called, and what only one or two of them need."""
