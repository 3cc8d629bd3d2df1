"""Biomedical names of the collection MTL-Bioinformatics-2016."""
