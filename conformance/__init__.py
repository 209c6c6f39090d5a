"""How this server is held against the real one. Imports nothing of the package."""
