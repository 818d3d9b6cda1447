"""Notifications of devices: a word from one that is known becomes an immediate poll. Nothing else is believed."""
