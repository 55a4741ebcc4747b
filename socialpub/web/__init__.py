"""Everything that speaks HTTP: API, storage, pages, and the process that serves them."""
