"""Collectors turn a target into readings. `api` is the contract, `registry` loads them."""
