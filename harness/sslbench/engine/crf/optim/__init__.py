"""The optimizer: L-BFGS, its inverse Hessian and vector kernels."""
