"""Models over HTTP: what programs and a page in a browser ask of them, on one's own machine."""
