"""The scheduler role: one leader claims due targets and publishes them in batches; others wait."""
