"""What the command line, the API and the pages do: one function per action, with its checks.

Functions here read and change SQL and Redis, and raise `poller.errors`; they print nothing.
"""
