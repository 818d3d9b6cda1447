"""One poll of an agent: which objects to request, over which links, with which retries."""
