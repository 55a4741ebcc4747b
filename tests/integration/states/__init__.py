"""Random requests, faults, deaths and times, held against a plain model of posts and their states."""
