"""The programs behind the Makefile's verbs."""
