"""What datasets share: lines, rows and their fields, releases, clones of repositories, and how each is refused."""
