"""Who is told of an alert, when, and in which notice: decisions only."""
