"""From next-token logits to hypotheses: greedy search, beam search and sampling, and the rules they obey."""
