"""What everything stands on: time, names, failures, secrets, signatures, log lines, the configuration."""
