"""`codechat probe`: recorded code on fresh valid inputs, for changes of behaviour that the suite does not see."""
