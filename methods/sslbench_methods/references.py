"""The papers behind the methods, featurizers and models, cited in full.

Docstrings cite them by authors and year, such as "Suzuki & Isozaki (2008), equation 2".
"""

from __future__ import annotations

CHIEU_2003 = (
    "H. L. Chieu, H. T. Ng: Named entity recognition with a maximum entropy approach. CoNLL 2003"
)
HE_2013 = (
    "L. He, J. Gillenwater, B. Taskar: Graph-Based Posterior Regularization for Semi-Supervised"
    " Structured Prediction. CoNLL 2013"
)
JIAO_2006 = (
    "F. Jiao, S. Wang, C.-H. Lee, R. Greiner, D. Schuurmans: Semi-supervised conditional random"
    " fields for improved sequence segmentation and labeling. ACL 2006"
)
LAFFERTY_2001 = (
    "J. Lafferty, A. McCallum, F. Pereira: Conditional random fields: probabilistic models for"
    " segmenting and labeling sequence data. ICML 2001"
)
MCDONALD_2005 = (
    "R. McDonald, F. Pereira: Identifying gene and protein mentions in text using conditional"
    " random fields. BMC Bioinformatics 6 (Suppl 1), 2005"
)
SUBRAMANYA_2010 = (
    "A. Subramanya, S. Petrov, F. Pereira: Efficient graph-based semi-supervised learning of"
    " structured tagging models. EMNLP 2010"
)
SUZUKI_2008 = (
    "J. Suzuki, H. Isozaki: Semi-supervised sequential labeling and segmentation using giga-word"
    " scale unlabeled data. ACL 2008"
)
WANG_2011 = (
    "Y. Wang, J. Kazama, Y. Tsuruoka, W. Chen, Y. Zhang, K. Torisawa: Improving Chinese word"
    " segmentation and POS tagging with semi-supervised methods using large auto-analyzed data."
    " IJCNLP 2011"
)
YAROWSKY_1995 = (
    "D. Yarowsky: Unsupervised word sense disambiguation rivaling supervised methods. ACL 1995"
)
ZENG_2013 = (
    "X. Zeng, D. F. Wong, L. S. Chao, I. Trancoso: Graph-based semi-supervised model for joint"
    " Chinese word segmentation and part-of-speech tagging. ACL 2013"
)
