"""Pictures of the dashboard at work, for whoever looks after its pages, and for the manual."""
