"""Lets `python -m heedful` do what the command `heed` does."""

from heedful.cli import main

if __name__ == "__main__":
    main()
