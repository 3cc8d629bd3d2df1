"""Registration of the built-in methods, featurizers and chain models."""

from __future__ import annotations

from sslbench import FeaturizerInfo, MethodInfo, ModelInfo, hookimpl

_SUZUKI = (
    "J. Suzuki, H. Isozaki: Semi-supervised sequential labeling and segmentation using giga-word"
    " scale unlabeled data. ACL 2008"
)
_HE = (
    "L. He, J. Gillenwater, B. Taskar: Graph-Based Posterior Regularization for Semi-Supervised"
    " Structured Prediction. CoNLL 2013"
)
_SUBRAMANYA = (
    "A. Subramanya, S. Petrov, F. Pereira: Efficient graph-based semi-supervised learning of"
    " structured tagging models. EMNLP 2010"
)
_ZENG = (
    "X. Zeng, D. F. Wong, L. S. Chao, I. Trancoso: Graph-based semi-supervised model for joint"
    " Chinese word segmentation and part-of-speech tagging. ACL 2013"
)
_JIAO = (
    "F. Jiao, S. Wang, C.-H. Lee, R. Greiner, D. Schuurmans: Semi-supervised conditional random"
    " fields for improved sequence segmentation and labeling. ACL 2006"
)
_LAFFERTY = (
    "J. Lafferty, A. McCallum, F. Pereira: Conditional random fields: probabilistic models for"
    " segmenting and labeling sequence data. ICML 2001"
)
_YAROWSKY = (
    "D. Yarowsky: Unsupervised word sense disambiguation rivaling supervised methods. ACL 1995"
)


METHODS: tuple[MethodInfo, ...] = (
    MethodInfo(
        name="supervised",
        summary="conditional random field trained on the labeled sentences alone",
        reference=_LAFFERTY,
        target="sslbench_methods.supervised:Supervised",
        baseline=True,
    ),
    MethodInfo(
        name="self_training",
        summary="retrain on the model's own Viterbi labels until they no longer change",
        reference=_YAROWSKY,
        target="sslbench_methods.self_training:SelfTraining",
    ),
    MethodInfo(
        name="jess_cm",
        summary="conditional random field whose potentials embed one HMM per template",
        reference=_SUZUKI,
        target="sslbench_methods.jess_cm.method:JessCM",
    ),
    MethodInfo(
        name="graph_self_training",
        summary="self-training on posteriors smoothed over a graph of similar trigrams",
        reference=f"{_SUBRAMANYA}, algorithm 1",
        target="sslbench_methods.graph_self_training.method:GraphSelfTraining",
    ),
    MethodInfo(
        name="type_self_training",
        summary="self-training on posteriors averaged by trigram: the same without the graph",
        reference=f"{_SUBRAMANYA}, section 6",
        target="sslbench_methods.graph_self_training.method:TypeSelfTraining",
    ),
    MethodInfo(
        name="virtual_evidence",
        summary="conditional random field that agrees with labels propagated on a graph",
        reference=f"{_ZENG}, equations 4 to 6",
        target="sslbench_methods.virtual_evidence.method:VirtualEvidenceTraining",
    ),
    MethodInfo(
        name="graph_propagation",
        summary="labels spread over a graph of similar trigrams, without a sequence model",
        reference=f"{_HE}, equation 22 (baseline GP)",
        target="sslbench_methods.graph_pr.propagation:GraphPropagation",
    ),
    MethodInfo(
        name="gp_crf",
        summary="conditional random field trained on labels spread over a graph",
        reference=f"{_HE} (baseline GP to CRF)",
        target="sslbench_methods.graph_pr.gp_crf:GraphPropagationCRF",
    ),
    MethodInfo(
        name="graph_pr",
        summary="conditional random field with posteriors regularized over a graph, by EM",
        reference=_HE,
        target="sslbench_methods.graph_pr.method:GraphPR",
    ),
    MethodInfo(
        name="pr1",
        summary="graph_pr after its first round",
        reference=f"{_HE} (variant PR1)",
        target="sslbench_methods.graph_pr.method:PR1",
    ),
    MethodInfo(
        name="pipeline_st",
        summary="Chinese words: segment, then tag, by templates of its own (takes no featurizer)",
        reference=f"{_ZENG}, Baseline I (the templates are sslbench's own)",
        target="sslbench_methods.chinese.pipeline_st:PipelineST",
    ),
    MethodInfo(
        name="cluster_features",
        summary="pipeline_st with features from automatically analyzed text (a re-interpretation)",
        reference=(
            "Y. Wang, J. Kazama, Y. Tsuruoka, W. Chen, Y. Zhang, K. Torisawa: Improving Chinese"
            " word segmentation and POS tagging with semi-supervised methods using large"
            " auto-analyzed data. IJCNLP 2011"
        ),
        target="sslbench_methods.chinese.cluster_features:ClusterFeatures",
    ),
    MethodInfo(
        name="entropy_regularization",
        summary="conditional random field that is also sure of the unlabeled sentences",
        reference=f"{_JIAO}, equation 3",
        target="sslbench_methods.entropy_regularization.method:EntropyRegularization",
    ),
)


FEATURIZERS: tuple[FeaturizerInfo, ...] = (
    FeaturizerInfo(
        name="basic",
        summary="word, neighbors, affixes and word type: a small set for any word column",
        reference=_LAFFERTY,
        target="sslbench_methods.featurizers.suzuki2008:basic",
        columns=("word",),
    ),
    FeaturizerInfo(
        name="pos47",
        summary="the 47 part-of-speech templates of the JESS-CM paper",
        reference=f"{_SUZUKI}, table 3",
        target="sslbench_methods.featurizers.suzuki2008:pos47",
        columns=("word",),
        tasks=("tagging",),
    ),
    FeaturizerInfo(
        name="chunk39",
        summary="the 39 chunking templates of the JESS-CM paper",
        reference=f"{_SUZUKI}, table 3",
        target="sslbench_methods.featurizers.suzuki2008:chunk39",
        columns=("word", "pos"),
        tasks=("spans",),
    ),
    FeaturizerInfo(
        name="ner79",
        summary="the 79 named-entity templates of the JESS-CM paper",
        reference=f"{_SUZUKI}, table 3",
        target="sslbench_methods.featurizers.suzuki2008:ner79",
        columns=("word", "pos"),
        tasks=("spans",),
    ),
    FeaturizerInfo(
        name="zh_char",
        summary="characters, their pairs and types in a window of two, for Chinese words",
        reference=(
            "X. Zeng, D. F. Wong, L. S. Chao, I. Trancoso: Graph-based semi-supervised model"
            " for joint Chinese word segmentation and part-of-speech tagging. ACL 2013, table 1"
        ),
        target="sslbench_methods.featurizers.suzuki2008:zh_char",
        columns=("word",),
        tasks=("segmentation", "joint"),
    ),
    FeaturizerInfo(
        name="pos_adapt",
        summary="part-of-speech tagging across domains: words, affixes, tests of spelling",
        reference=(
            "A. Subramanya, S. Petrov, F. Pereira: Efficient graph-based semi-supervised"
            " learning of structured tagging models. EMNLP 2010 (the list is sslbench's own)"
        ),
        target="sslbench_methods.featurizers.adaptation:pos_adapt",
        columns=("word",),
        tasks=("tagging",),
    ),
    FeaturizerInfo(
        name="pos_window",
        summary="part-of-speech tagging: forms, suffixes and spelling of three words",
        reference=_HE,
        target="sslbench_methods.featurizers.universal:pos_window",
        columns=("word",),
        tasks=("tagging",),
    ),
    FeaturizerInfo(
        name="gene2005",
        summary="gene names: words, affixes and 15 tests of spelling in a window of one",
        reference=(
            "R. McDonald, F. Pereira: Identifying gene and protein mentions in text using"
            " conditional random fields. BMC Bioinformatics 6 (Suppl 1), 2005, without word lists"
        ),
        target="sslbench_methods.featurizers.genes:gene2005",
        columns=("word",),
        tasks=("spans",),
    ),
    FeaturizerInfo(
        name="pixels",
        summary="the 128 pixels of a handwritten letter, as dense columns",
        reference=_HE,
        target="sslbench_methods.featurizers.pixels:pixels",
        columns=("image",),
        tasks=("tagging",),
    ),
    FeaturizerInfo(
        name="pixels3",
        summary="the pixels of a handwritten letter and of its two neighbors",
        reference=_HE,
        target="sslbench_methods.featurizers.pixels:pixels3",
        columns=("image",),
        tasks=("tagging",),
    ),
    FeaturizerInfo(
        name="pixels3_discounted",
        summary="pixels3, each worth a tenth: small samples leave room for the order of letters",
        reference=f"{_HE} (the factor is that of their release)",
        target="sslbench_methods.featurizers.pixels:pixels3_discounted",
        columns=("image",),
        tasks=("tagging",),
    ),
)


MODELS: tuple[ModelInfo, ...] = (
    ModelInfo(
        name="crf1",
        summary="first-order linear-chain conditional random field",
        reference=_LAFFERTY,
        target="sslbench.crf.model:ChainModel",
    ),
    ModelInfo(
        name="crf2",
        summary="second-order chain: also weights of three labels in a row",
        reference=_HE,
        target="sslbench.crf.model:SecondOrderModel",
    ),
)


@hookimpl
def sslbench_methods() -> list[MethodInfo]:
    """Return the built-in methods."""
    return list(METHODS)


@hookimpl
def sslbench_featurizers() -> list[FeaturizerInfo]:
    """Return the built-in featurizers."""
    return list(FEATURIZERS)


@hookimpl
def sslbench_models() -> list[ModelInfo]:
    """Return the built-in models."""
    return list(MODELS)
