"""The measured costs of attention, recurrence and convolution."""
