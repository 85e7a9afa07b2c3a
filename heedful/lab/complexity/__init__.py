"""What attention, recurrence and convolution cost, measured."""
