"""Collectors turn a target into readings. `api` is the contract, `registry` finds them."""
