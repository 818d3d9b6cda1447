"""Everything commands print: tables, progress, errors, Prometheus text. Reads no store."""
