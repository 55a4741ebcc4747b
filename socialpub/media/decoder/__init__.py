"""Images and videos are decoded in a child process with limits."""
