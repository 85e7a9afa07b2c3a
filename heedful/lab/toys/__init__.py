"""Toys: small problems that show what attention can do, and what it cannot."""
