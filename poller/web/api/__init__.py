"""What programs read over HTTP: overview as JSON, metrics for Prometheus, the live stream."""
