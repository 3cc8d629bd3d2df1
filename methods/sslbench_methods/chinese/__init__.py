"""Baselines of Chinese segmentation and tagging (Zeng et al. 2013; Wang et al. 2011)."""
