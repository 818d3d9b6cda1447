"""How commands print: tables, columns, progress, error form, Prometheus text. Nothing here reads a store."""
