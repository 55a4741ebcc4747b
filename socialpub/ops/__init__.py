"""Care: copies, the doctor, health."""
