"""The inventory over HTTP: sites, devices, targets, credentials."""
