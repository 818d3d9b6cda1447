"""Jobs: the contract for plugins (`api`), the installed ones (`registry`), and our own."""
