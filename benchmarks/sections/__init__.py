"""The sections, one file each. Each file has a `SECTION`, and a new file is found by itself."""
