"""The flat weight vector: its layout, the tables of the kernels, scores and gradients."""
