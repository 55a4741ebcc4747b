"""What every page of the dashboard shares: visit, sign-in cookie, forms, rendering."""
