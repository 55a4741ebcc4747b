"""The command line: `socialpub` and its commands."""
