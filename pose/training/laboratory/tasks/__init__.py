"""Small synthetic tasks: random questions with one correct answer each."""
