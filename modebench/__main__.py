"""``python -m modebench``."""

from modebench.cli import main

if __name__ == "__main__":
    main()
