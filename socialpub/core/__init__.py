"""What everything else is built on: time, ids, errors, secrets, signatures, log lines, validation, configuration."""
