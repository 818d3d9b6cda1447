"""One module per typed word: `poller device` is `device.py`."""
