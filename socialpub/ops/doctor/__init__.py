"""The checks of `socialpub doctor`."""
