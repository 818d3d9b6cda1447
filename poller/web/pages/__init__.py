"""Pages: values to texts, tables, SVG and HTML. No module of this package reads a store."""
