"""welcome-operator."""
