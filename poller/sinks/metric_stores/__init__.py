"""Sinks of stores for metrics behind HTTP: InfluxDB and its relatives, OpenTelemetry."""
