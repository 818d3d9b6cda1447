"""Pages about many devices: the overview, the wall, the sites and the list of devices."""
