"""Guarantees of the process: starts and stops, its surroundings, its clock."""
