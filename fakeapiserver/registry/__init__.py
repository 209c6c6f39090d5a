"""What each resource does of its own, and the generic store that all share."""
