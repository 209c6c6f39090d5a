"""Admission webhooks: which are called for a write, what they are sent, and what becomes of their answers."""
