"""The checks of `socialpub doctor` and of readiness."""
