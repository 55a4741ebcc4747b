"""What takes minutes, or a machine of which one is root: `make endurance`."""
