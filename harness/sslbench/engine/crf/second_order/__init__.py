"""Second-order chains: potentials and inference."""
