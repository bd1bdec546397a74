"""Reading of data files, shared by all datasets: lines, rows and their fields, releases, and messages for mistakes."""
