"""Everything commands print: tables, columns, progress, errors, Prometheus text. No store is read here."""
