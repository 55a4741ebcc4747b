"""The units of systemd/, started by systemd itself."""
