"""Finders: one function per pattern, registered under the names that rules use."""
