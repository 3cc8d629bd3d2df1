"""What a training carries with it: random numbers, clocks, notes, checkpoints."""
