"""What a poll yields and what counters mean: readings, rates with a verdict, series identity, histograms."""
