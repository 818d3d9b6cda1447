"""A package, not only a directory: RouterOS-api installs a package of the same name, which would be found instead."""
