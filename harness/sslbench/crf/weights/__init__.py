"""The flat weight vector: layout, tables, scores and gradients."""
