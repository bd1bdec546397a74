"""`python -m codechat`."""

import sys

from codechat.cli.app import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
