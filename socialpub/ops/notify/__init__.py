"""Tells the owner what needs them: what to tell and when, and the sending of it through Apprise."""
