"""The cluster over HTTP: overview, workers, domains, collectors, sinks, settings."""
