"""First-order chains: potentials and inference."""
