"""What is found in code by reading it: one pattern a function, under the names that rules use."""
