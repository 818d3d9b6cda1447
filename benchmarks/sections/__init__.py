"""One file per section: its name is the section's, its `SECTION` says what it asks. A new file is all it takes."""
