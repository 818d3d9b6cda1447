"""Devices, targets and sites are added, edited and removed here: the routes of the forms."""
