"""Admission policies in CEL: what they have in common, and with the match conditions of webhooks."""
