"""Screenshots of the dashboard, for its designers and for the manual."""
