"""Where objects live: one global revision, compare-and-swap, history, watch. Raises StorageError only."""
