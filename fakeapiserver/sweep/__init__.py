"""Sweeps: one scenario, run again and again, each time with another legal surprise for the operator, to find the bugs in it."""
