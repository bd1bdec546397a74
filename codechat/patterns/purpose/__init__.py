"""Whether what was added is what was asked for: what a construct has to do to be one, where its form does not tell."""
