"""What scrapes read of the inventory."""
