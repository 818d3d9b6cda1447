"""The parts of the cluster as JSON: the same fields for the command line and the API."""
