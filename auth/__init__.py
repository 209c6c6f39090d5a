"""Who are you (authenticators) and may you (authorizers)."""
