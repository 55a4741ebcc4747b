"""MCP: the API as tools for agents (contract 10.4)."""
