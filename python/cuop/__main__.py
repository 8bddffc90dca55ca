"""python -m cuop: the command line, where its script is not on the path."""

from cuop.cli.main import main

if __name__ == "__main__":
    main()
