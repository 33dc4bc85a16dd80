"""What a lecturer adds to graded hand-ins: the class, deadlines, marks of a person, tables for a
learning management system. No line of a student runs here: texts are read, and no more."""
