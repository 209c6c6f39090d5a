"""Persistent volumes, their claims, and the volumes of pods."""
