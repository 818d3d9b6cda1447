"""What all routes of the API share: access, errors, pages, tags of rows, repeated requests."""
