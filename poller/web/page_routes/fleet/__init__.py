"""Routes of the fleet's pages: overview, sites, wall, devices, and actions on many."""
