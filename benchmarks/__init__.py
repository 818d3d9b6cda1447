"""The benchmarks. `make bench` runs the sections; see docs/benchmarks.md. Not part of the wheel."""
