"""What figures are made of: the house style, curves over the turns, points by group."""
