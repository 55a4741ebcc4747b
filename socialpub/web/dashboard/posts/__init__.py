"""The pages of the list of posts and of one post, and the actions on a post."""
