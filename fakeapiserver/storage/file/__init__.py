"""The backend that keeps its state in a folder: the memory backend over an SQLite database."""
