"""The contract of all routes of the API: access, errors, pages, tags of rows, repeated requests."""
