"""How fast is it, and at what cost? `make bench` runs the sections; see docs/benchmarks.md. Not part of the wheel."""
