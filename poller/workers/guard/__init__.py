"""Guards against bad plugins and stalls: watchdogs, isolation, black box and crash report."""
