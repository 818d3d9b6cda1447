"""The catalogue of jobs and the ledger of their runs."""
