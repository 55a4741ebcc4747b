"""The process that delivers: Huey's consumer, the wake-up it answers, and the reconciler beside it."""
