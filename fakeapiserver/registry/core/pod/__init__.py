"""Pods, and the rules that everything with a pod template shares."""
