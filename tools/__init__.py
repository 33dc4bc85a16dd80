"""What the Makefile's verbs call; each module says its own."""
