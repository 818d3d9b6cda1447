"""The inventory in SQL: devices, targets, sites, credentials; import, export, and the feed of
changes.
"""
