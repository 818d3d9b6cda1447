"""One poll of an agent: which objects to request, in which order, over which links, with which retries."""
