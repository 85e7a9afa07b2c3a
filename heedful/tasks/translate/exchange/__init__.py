"""To other libraries, and from the Hub."""
