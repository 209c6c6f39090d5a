"""Guarantees for requests: whatever a client sends, it gets an answer, and the server goes on."""
