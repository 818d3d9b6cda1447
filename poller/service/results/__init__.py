"""Results for programs outside: the last values of the fleet, and its devices."""
