"""The optimizer: L-BFGS and its vector kernels."""
