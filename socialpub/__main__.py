"""`python -m socialpub`: the command line without its script."""

from socialpub.cli.main import main

if __name__ == "__main__":
    main()
