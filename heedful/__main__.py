"""The command `heed`, and `python -m heedful`."""

import sys

try:
    from heedful.cli import main
except KeyboardInterrupt:  # Ctrl-C before a command has begun
    sys.exit(130)

if __name__ == "__main__":
    main()
