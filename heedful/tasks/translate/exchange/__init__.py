"""Export to other libraries, and import from the Hub."""
