"""The dashboard's list of posts, one post, and the actions on it."""
