"""What plugin authors use to test their collectors; see docs/collectors.md."""
