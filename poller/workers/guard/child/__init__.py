"""A collector in a child process: its crash, leak or hang ends no other poll of the worker.

`child_supervisor` and `child_process` are the worker's side, `__main__` is the child's side;
`frames` and `child_messages` are the protocol between them.
"""
