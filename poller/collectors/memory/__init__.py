"""The memory of polls: what unfinished answers may take of a worker, and frames behind errors."""
