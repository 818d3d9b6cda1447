"""A collector in a process of its own: what may crash, leak or stand still does so there, and takes nobody along.

`keeper` is the worker's side, `__main__` the child's, `frames` and `messages` what goes between them.
"""
