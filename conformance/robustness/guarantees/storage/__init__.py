"""Guarantees of the storage: revisions, histories, and schedules of an event loop that a seed has chosen."""
