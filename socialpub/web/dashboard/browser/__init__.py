"""The parts of every dashboard page: visit, cookies, forms, rendering."""
