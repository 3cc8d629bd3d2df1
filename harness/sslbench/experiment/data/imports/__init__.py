"""Files of other programs as sentences with labels: JSON, parquet, brat, spaCy."""
