"""Requests as evidence: a log of the requests of clients, queries for it, and their tables."""
