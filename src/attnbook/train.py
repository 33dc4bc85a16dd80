"""The command `python -m attnbook.train`; see `attnbook.learn.engine`."""

from attnbook.learn.engine import main

if __name__ == "__main__":
    main()
