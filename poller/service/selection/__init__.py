"""The devices and targets that a filter selects, in pages of bounded cost, and how many."""
