"""HTTP below the pages and the API: protocol, requests, limits, files, problems."""
