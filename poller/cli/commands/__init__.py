"""One module per typed word: `poller device` is `device.py`. A module reads options, acts and prints."""
