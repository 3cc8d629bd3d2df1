"""The papers behind the datasets, cited in full.

Docstrings cite them by authors and year, such as "Smith et al. (2008)".
"""

from __future__ import annotations

BALASURIYA_2009 = (
    "D. Balasuriya, N. Ringland, J. Nothman, T. Murphy, J. R. Curran: Named entity recognition in"
    " Wikipedia. People's Web Meets NLP 2009"
)
BELTAGY_2019 = (
    "I. Beltagy, K. Lo, A. Cohan: SciBERT: a pretrained language model for scientific text. EMNLP"
    " 2019"
)
CHEN_1999 = (
    "F.-Y. Chen, P.-F. Tsai, K.-J. Chen, C.-R. Huang: The construction of Sinica Treebank."
    " CLCLP 4, 1999"
)
CRICHTON_2017 = (
    "G. Crichton, S. Pyysalo, B. Chiu, A. Korhonen: A neural network multi-task learning approach"
    " to biomedical named entity recognition. BMC Bioinformatics 18, 2017"
)
EMERSON_2005 = "T. Emerson: The second international Chinese word segmentation bakeoff. SIGHAN 2005"
FORSYTH_2007 = (
    "E. N. Forsyth, C. H. Martell: Lexical and discourse analysis of online chat dialog. ICSC 2007"
)
FRANCIS_1979 = (
    "W. N. Francis, H. Kucera: Brown corpus manual. Department of Linguistics, Brown University"
    " 1964, revised 1979"
)
GERNER_2010 = (
    "M. Gerner, G. Nenadic, C. M. Bergman: LINNAEUS: a species name identification system for"
    " biomedical literature. BMC Bioinformatics 11, 2010"
)
HE_2013 = (
    "L. He, J. Gillenwater, B. Taskar: Graph-Based Posterior Regularization for Semi-Supervised"
    " Structured Prediction. CoNLL 2013"
)
IDE_2010 = (
    "N. Ide, C. Baker, C. Fellbaum, R. Passonneau: The manually annotated sub-corpus: a community"
    " resource for and by the people. ACL 2010"
)
JIAO_2006 = (
    "F. Jiao, S. Wang, C.-H. Lee, R. Greiner, D. Schuurmans: Semi-supervised conditional random"
    " fields for improved sequence segmentation and labeling. ACL 2006"
)
JIN_2008 = (
    "G. Jin, X. Chen: The fourth international Chinese language processing bakeoff. SIGHAN 2008"
)
JUDGE_2006 = (
    "J. Judge, A. Cahill, J. van Genabith: QuestionBank: creating a corpus of parse-annotated"
    " questions. ACL 2006"
)
KASSEL_1995 = (
    "R. H. Kassel: A comparison of approaches to on-line handwritten character recognition. PhD"
    " thesis, MIT 1995"
)
KULICK_2004 = (
    "S. Kulick et al.: Integrated annotation for biomedical information extraction. BioLINK 2004"
)
LIANG_2020 = (
    "C. Liang et al.: BOND: BERT-assisted open-domain named entity recognition with distant"
    " supervision. KDD 2020"
)
LI_2016 = (
    "J. Li et al.: BioCreative V CDR task corpus: a resource for chemical disease relation"
    " extraction. Database, 2016"
)
MARCUS_1993 = (
    "M. Marcus, B. Santorini, M. A. Marcinkiewicz: Building a large annotated corpus of English:"
    " the Penn Treebank. Computational Linguistics 19(2), 1993"
)
NIVRE_2020 = (
    "J. Nivre et al.: Universal Dependencies v2: An Evergrowing Multilingual Treebank Collection."
    " LREC 2020"
)
NYE_2018 = (
    "B. Nye et al.: A corpus with multi-level annotations of patients, interventions and outcomes"
    " to support language processing for medical literature. ACL 2018"
)
PETROV_2012 = "S. Petrov, D. Das, R. McDonald: A universal part-of-speech tagset. LREC 2012"
PYYSALO_2013 = (
    "S. Pyysalo, T. Ohta, S. Ananiadou: Overview of the cancer genetics (CG) task of BioNLP shared"
    " task 2013. BioNLP 2013"
)
PYYSALO_2014 = (
    "S. Pyysalo, S. Ananiadou: Anatomical entity mention recognition at literature scale."
    " Bioinformatics 30(6), 2014"
)
SMITH_2008 = (
    "L. Smith et al.: Overview of BioCreative II gene mention recognition. Genome Biology 9"
    " (Suppl 2), 2008"
)
STRAUSS_2016 = (
    "B. Strauss, B. E. Toma, A. Ritter, M.-C. de Marneffe, W. Xu: Results of the WNUT16 named"
    " entity recognition shared task. WNUT 2016"
)
SUBRAMANYA_2010 = (
    "A. Subramanya, S. Petrov, F. Pereira: Efficient graph-based semi-supervised learning of"
    " structured tagging models. EMNLP 2010"
)
SUZUKI_2008 = (
    "J. Suzuki, H. Isozaki: Semi-supervised sequential labeling and segmentation using giga-word"
    " scale unlabeled data. ACL 2008"
)
TANABE_2005 = (
    "L. Tanabe, N. Xie, L. H. Thom, W. Matten, W. J. Wilbur: GENETAG: a tagged corpus for"
    " gene/protein named entity recognition. BMC Bioinformatics 6 (Suppl 1), 2005"
)
TASKAR_2003 = "B. Taskar, C. Guestrin, D. Koller: Max-margin Markov networks. NIPS 2003"
TATEISI_2004 = (
    "Y. Tateisi, J. Tsujii: Part-of-speech annotation of biology research abstracts. LREC 2004"
)
TJONG_KIM_SANG_2000 = (
    "E. F. Tjong Kim Sang, S. Buchholz: Introduction to the CoNLL-2000 shared task: chunking."
    " CoNLL 2000"
)
TJONG_KIM_SANG_2002 = (
    "E. F. Tjong Kim Sang: Introduction to the CoNLL-2002 shared task: language-independent named"
    " entity recognition. CoNLL 2002"
)
TJONG_KIM_SANG_2003 = (
    "E. F. Tjong Kim Sang, F. De Meulder: Introduction to the CoNLL-2003 shared task:"
    " language-independent named entity recognition. CoNLL 2003"
)
WANG_2011 = (
    "Y. Wang, J. Kazama, Y. Tsuruoka, W. Chen, Y. Zhang, K. Torisawa: Improving Chinese word"
    " segmentation and POS tagging with semi-supervised methods using large auto-analyzed data."
    " IJCNLP 2011"
)
XUE_2010 = "N. Xue et al.: Chinese Treebank 7.0. LDC2010T07, 2010"
ZHANG_2014 = (
    "M. Zhang, Y. Zhang, W. Che, T. Liu: Type-supervised domain adaptation for joint segmentation"
    " and POS-tagging. EACL 2014"
)
