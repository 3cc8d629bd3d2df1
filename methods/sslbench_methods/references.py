"""The papers behind the methods, featurizers and models, cited in full.

Docstrings cite them by authors and year, such as "Suzuki & Isozaki (2008), equation 2".
"""

from __future__ import annotations

ANDO_2005 = (
    "R. K. Ando, T. Zhang: A framework for learning predictive structures from multiple tasks and"
    " unlabeled data. Journal of Machine Learning Research 6, 2005"
)
BLITZER_2006 = (
    "J. Blitzer, R. McDonald, F. Pereira: Domain adaptation with structural correspondence"
    " learning. EMNLP 2006"
)
BLUM_1998 = "A. Blum, T. Mitchell: Combining labeled and unlabeled data with co-training. COLT 1998"
BROWN_1992 = (
    "P. Brown, V. Della Pietra, P. deSouza, J. Lai, R. Mercer: Class-based n-gram models of natural"
    " language. Computational Linguistics 18(4), 1992"
)
CASCANTE_2021 = (
    "P. Cascante-Bonilla, F. Tan, Y. Qi, V. Ordonez: Curriculum labeling: revisiting"
    " pseudo-labeling for semi-supervised learning. AAAI 2021"
)
CHIEU_2003 = (
    "H. L. Chieu, H. T. Ng: Named entity recognition with a maximum entropy approach. CoNLL 2003"
)
DAWID_1979 = (
    "A. P. Dawid, A. M. Skene: Maximum likelihood estimation of observer error-rates using the EM"
    " algorithm. Applied Statistics 28(1), 1979"
)
DEVLIN_2019 = (
    "J. Devlin, M.-W. Chang, K. Lee, K. Toutanova: BERT: pre-training of deep bidirectional"
    " transformers for language understanding. NAACL 2019"
)
GANCHEV_2010 = (
    "K. Ganchev, J. Graca, J. Gillenwater, B. Taskar: Posterior regularization for structured"
    " latent variable models. Journal of Machine Learning Research 11, 2010"
)
GURURANGAN_2020 = (
    "S. Gururangan, A. Marasovic, S. Swayamdipta, K. Lo, I. Beltagy, D. Downey, N. A. Smith: Don't"
    " stop pretraining: adapt language models to domains and tasks. ACL 2020"
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
LEVY_2014 = (
    "O. Levy, Y. Goldberg: Neural word embedding as implicit matrix factorization. NIPS 2014"
)
LISON_2020 = (
    "P. Lison, J. Barnes, A. Hubin, S. Touileb: Named entity recognition without labelled data: a"
    " weak supervision approach. ACL 2020"
)
MA_2016 = "X. Ma, E. Hovy: End-to-end sequence labeling via bi-directional LSTM-CNNs-CRF. ACL 2016"
MANN_2010 = (
    "G. Mann, A. McCallum: Generalized expectation criteria for semi-supervised learning with"
    " weakly labeled data. Journal of Machine Learning Research 11, 2010"
)
MCDONALD_2005 = (
    "R. McDonald, F. Pereira: Identifying gene and protein mentions in text using conditional"
    " random fields. BMC Bioinformatics 6 (Suppl 1), 2005"
)
MINTZ_2009 = (
    "M. Mintz, S. Bills, R. Snow, D. Jurafsky: Distant supervision for relation extraction without"
    " labeled data. ACL 2009"
)
MNIH_2012 = "V. Mnih, G. Hinton: Learning to label aerial images from noisy data. ICML 2012"
SHANG_2018 = (
    "J. Shang, L. Liu, X. Gu, X. Ren, T. Ren, J. Han: Learning named entity tagger using"
    " domain-specific dictionary. EMNLP 2018"
)
SOGAARD_2010 = "A. Sogaard: Simple semi-supervised training of part-of-speech taggers. ACL 2010"
SUBRAMANYA_2010 = (
    "A. Subramanya, S. Petrov, F. Pereira: Efficient graph-based semi-supervised learning of"
    " structured tagging models. EMNLP 2010"
)
SUZUKI_2007 = (
    "J. Suzuki, A. Fujino, H. Isozaki: Semi-supervised structured output learning based on a hybrid"
    " generative and discriminative approach. EMNLP-CoNLL 2007"
)
SUZUKI_2008 = (
    "J. Suzuki, H. Isozaki: Semi-supervised sequential labeling and segmentation using giga-word"
    " scale unlabeled data. ACL 2008"
)
TURIAN_2010 = (
    "J. Turian, L. Ratinov, Y. Bengio: Word representations: a simple and general method for"
    " semi-supervised learning. ACL 2010"
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
ZHOU_2005 = (
    "Z.-H. Zhou, M. Li: Tri-training: exploiting unlabeled data using three classifiers. IEEE"
    " Transactions on Knowledge and Data Engineering 17(11), 2005"
)
ZHANG_2021 = (
    "B. Zhang, Y. Wang, W. Hou, H. Wu, J. Wang, M. Okumura, T. Shinozaki: FlexMatch: boosting"
    " semi-supervised learning with curriculum pseudo labeling. NeurIPS 2021"
)
