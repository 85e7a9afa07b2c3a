"""Looking inside a model: recorded attention weights, labels for heads, pictures and a page."""
