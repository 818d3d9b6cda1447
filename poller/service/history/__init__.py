"""The history of readings for the command line, the API and the pages."""
