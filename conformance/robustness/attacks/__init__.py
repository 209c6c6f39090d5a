"""Requests that cost a server as much as their size allows, and how long another client waits meanwhile."""
