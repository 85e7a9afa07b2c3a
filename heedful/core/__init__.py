"""Floor 1: attention, and what surrounds it in every transformer. It needs torch and nothing else."""
