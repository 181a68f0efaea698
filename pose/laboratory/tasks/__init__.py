"""The classic small tasks: endless random questions with one right answer each."""
