"""HTTP for programs: the overview as JSON, metrics for Prometheus, the live stream of the page."""
