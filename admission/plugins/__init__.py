"""The admission plugins, a file each, with upstream's names in lower case. They are unaware of each other; chain.py
composes them.
"""
