"""Every option: fields with bounds and meaning, the sources they come from, and how they are shown."""
