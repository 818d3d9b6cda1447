"""Devices, targets and sites are added, edited and removed here: what the forms show."""
