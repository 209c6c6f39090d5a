"""Promises about a server under load, each a command with figures: `python -m conformance.robustness NAME [--full]`."""
