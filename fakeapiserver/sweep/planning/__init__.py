"""The perturbations that are worth trying, and their order."""
