"""Evaluates checked expressions: `evaluator.py` turns a syntax tree into steps, the other modules make the steps of each construct.

Upstream: github.com/google/cel-go/interpreter
"""
