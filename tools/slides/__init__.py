"""A deck of slides for each story, made of its built page."""
