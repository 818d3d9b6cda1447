"""The fleet in SQL: where targets are, and the outcomes of a day by device."""
