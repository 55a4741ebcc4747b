"""`socialpub install-service` and `go-back`."""
