"""The parts of the cluster, as people and programs read them: workers, domains, plugins."""
