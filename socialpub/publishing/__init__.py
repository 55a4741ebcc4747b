"""Posts on their way: accepted, taken up, sent, written down."""
