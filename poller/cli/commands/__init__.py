"""One module for each typed word (`poller device` is `device.py`). Work that two commands share belongs to a room beside this one."""
