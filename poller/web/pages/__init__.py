"""Pages: values to the texts, tables and SVG of a page. Nothing here reads a store."""
