"""`install-service` and `uninstall-service`: from an installed package to a service of the machine, and back."""
