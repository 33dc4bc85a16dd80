"""The command `python -m attnbook.train`; what it does stands in `attnbook.learn.engine`."""

from attnbook.learn.engine import main

if __name__ == "__main__":
    main()
