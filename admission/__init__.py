"""The last gate of a write: mutating plugins, then validating ones."""
