"""The metrics of the processes of this host, as text: at one port, in one file, or on the page."""
