"""The leader tells people of alerts: notices, the threads of receivers, the dead man's switch."""
