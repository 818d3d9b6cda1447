"""The web role: the pages, their API and the metrics. It only reads; it never changes a target."""
