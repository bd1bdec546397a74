"""`python -m codechat`."""

from codechat.cli.app import entry

if __name__ == "__main__":
    entry()
