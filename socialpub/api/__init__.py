"""The HTTP API: shapes in, answers out. No rule of the product lives here."""
