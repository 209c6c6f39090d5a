"""The storage of objects: one global revision, compare-and-swap, history, watch. Raises StorageError only."""
