"""The version of socialpub. A release has its number. The next commit has the next number and `.dev0`."""

VERSION = "1.1.0.dev0"
