"""One run: training, tuning, prediction, saved taggers."""
