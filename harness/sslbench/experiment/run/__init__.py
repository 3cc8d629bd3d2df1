"""One run: training, tuning, prediction, checkpoints, saved taggers."""
