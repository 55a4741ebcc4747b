"""The OpenAPI document and its page of reference."""
