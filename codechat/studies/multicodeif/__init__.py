"""MultiCodeIF: constraints on code in many languages, in levels and with repairs."""
