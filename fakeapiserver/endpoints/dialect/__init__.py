"""The differences between built-in and custom resources on the way from the path to the answer: chosen once, when a scope is made."""
