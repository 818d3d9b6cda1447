"""A collector in a child process: a crash, a leak or a hang ends there, and no other poll of the worker ends with it.

`child_supervisor` and `child_process` are the worker's side, `__main__` is the child's side; `frames` and
`child_messages` are the protocol between them.
"""
