"""The engine: corpora, features, chain CRFs and graphs, and the kernels they are made of."""
