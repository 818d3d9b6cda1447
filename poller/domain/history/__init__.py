"""History in a small space: polls transposed and compressed. The only room that knows numpy."""
