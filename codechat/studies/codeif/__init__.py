"""CodeIF-Bench: conversations of instructions that tests verify, static and dynamic."""
