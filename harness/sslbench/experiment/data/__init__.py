"""Datasets, the folder of their files, and users' own data.

Does not import numpy: ``sslbench data path`` stays quick.
"""

from sslbench.experiment.data.dataset import Dataset, Metadata
from sslbench.experiment.data.home import DataHome

__all__ = ["DataHome", "Dataset", "Metadata"]
