"""What figures are made of: the house style, and what a panel shows."""
