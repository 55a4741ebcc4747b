"""What a browser sees."""
