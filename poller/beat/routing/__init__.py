"""Which queue a batch goes to: that of the worker which knows its targets, or the shared one."""
