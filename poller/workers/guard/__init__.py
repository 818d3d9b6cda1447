"""Guards against bad plugins and stalls: watchdogs, isolation in a child process, black box and crash report."""
