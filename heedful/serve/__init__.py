"""Models over HTTP, for programs and for pages in a browser, on one's own machine."""
