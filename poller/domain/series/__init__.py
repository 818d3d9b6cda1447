"""Series over a range of time: lines of points, from raw polls or from roll-ups."""
