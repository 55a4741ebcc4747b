"""What `/metrics` tells: a file for each subject, and `families` for all of them."""
