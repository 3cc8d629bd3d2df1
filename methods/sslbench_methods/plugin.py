"""Registration of the built-in methods, featurizers, chain models and similarities."""

from __future__ import annotations

from sslbench import (
    FeaturizerInfo,
    MethodInfo,
    ModelInfo,
    SimilarityInfo,
    TextFeaturesInfo,
    hookimpl,
)
from sslbench_methods.references import (
    ANDO_2005,
    BROWN_1992,
    CHIEU_2003,
    DEVLIN_2019,
    HE_2013,
    JIAO_2006,
    LAFFERTY_2001,
    LEVY_2014,
    MANN_2010,
    MCDONALD_2005,
    SOGAARD_2010,
    SUBRAMANYA_2010,
    SUZUKI_2007,
    SUZUKI_2008,
    TURIAN_2010,
    WANG_2011,
    YAROWSKY_1995,
    ZENG_2013,
    ZHOU_2005,
)

METHODS: tuple[MethodInfo, ...] = (
    MethodInfo(
        name="supervised",
        summary="conditional random field trained on the labeled sentences alone",
        reference=LAFFERTY_2001,
        target="sslbench_methods.supervised:Supervised",
        baseline=True,
    ),
    MethodInfo(
        name="self_training",
        summary="retrain on the model's own Viterbi labels until they no longer change",
        reference=YAROWSKY_1995,
        target="sslbench_methods.self_training:SelfTraining",
        cost=2.5,
    ),
    MethodInfo(
        name="jess_cm",
        summary="conditional random field whose potentials embed one HMM per template",
        reference=SUZUKI_2008,
        target="sslbench_methods.jess_cm.method:JessCM",
        cost=6,
    ),
    MethodInfo(
        name="graph_self_training",
        summary="self-training on posteriors smoothed over a graph of similar trigrams",
        reference=f"{SUBRAMANYA_2010}, algorithm 1",
        target="sslbench_methods.graph_self_training.method:GraphSelfTraining",
        cost=3,
        models=("crf1",),
    ),
    MethodInfo(
        name="type_self_training",
        summary="self-training on posteriors averaged by trigram: the same without the graph",
        reference=f"{SUBRAMANYA_2010}, section 6",
        target="sslbench_methods.graph_self_training.method:TypeSelfTraining",
        cost=2.8,
        models=("crf1",),
    ),
    MethodInfo(
        name="graph_lift",
        summary="self-training that decodes with a graph's lift over base rates",
        reference=f"sslbench's own, after {SUBRAMANYA_2010}",
        target="sslbench_methods.graph_lift.method:GraphLift",
        cost=4.3,
    ),
    MethodInfo(
        name="virtual_evidence",
        summary="conditional random field that agrees with labels propagated on a graph",
        reference=f"{ZENG_2013}, equations 4 to 6",
        target="sslbench_methods.virtual_evidence.method:VirtualEvidenceTraining",
        cost=7.4,
    ),
    MethodInfo(
        name="graph_propagation",
        summary="labels spread over a graph of similar trigrams, without a sequence model",
        reference=f"{HE_2013}, equation 22 (baseline GP)",
        target="sslbench_methods.graph_pr.propagation:GraphPropagation",
        cost=1,
    ),
    MethodInfo(
        name="gp_crf",
        summary="conditional random field trained on labels spread over a graph",
        reference=f"{HE_2013} (baseline GP to CRF)",
        target="sslbench_methods.graph_pr.gp_crf:GraphPropagationCRF",
        cost=9,
    ),
    MethodInfo(
        name="graph_pr",
        summary="conditional random field with posteriors regularized over a graph, by EM",
        reference=HE_2013,
        target="sslbench_methods.graph_pr.method:GraphPR",
        cost=4.8,
    ),
    MethodInfo(
        name="pr1",
        summary="graph_pr after its first round",
        reference=f"{HE_2013} (variant PR1)",
        target="sslbench_methods.graph_pr.method:PR1",
        cost=3.1,
    ),
    MethodInfo(
        name="pipeline_st",
        summary="Chinese words: segment, then tag, by templates of its own (takes no featurizer)",
        reference=f"{ZENG_2013}, Baseline I (the templates are sslbench's own)",
        target="sslbench_methods.chinese.pipeline_st:PipelineST",
        cost=0.7,
        tasks=("segmentation", "joint"),
    ),
    MethodInfo(
        name="cluster_features",
        summary="pipeline_st with features from automatically analyzed text (a re-interpretation)",
        reference=WANG_2011,
        target="sslbench_methods.chinese.cluster_features:ClusterFeatures",
        cost=1.4,
        tasks=("segmentation", "joint"),
    ),
    MethodInfo(
        name="entropy_regularization",
        summary="conditional random field that is also sure of the unlabeled sentences",
        reference=f"{JIAO_2006}, equation 3",
        target="sslbench_methods.entropy_regularization.method:EntropyRegularization",
        cost=1.9,
    ),
    MethodInfo(
        name="brown_clusters",
        summary="supervised, with Brown clusters of the words of all text as features",
        reference=f"{BROWN_1992}; {TURIAN_2010}",
        target="sslbench_methods.brown_clusters.method:BrownClustersCRF",
        cost=1.3,
    ),
    MethodInfo(
        name="word_vectors",
        summary="supervised, with vectors of words as features: of a file, or of all text",
        reference=f"{TURIAN_2010}; {LEVY_2014}",
        target="sslbench_methods.word_vectors.method:WordVectorsCRF",
        cost=1.6,
    ),
    MethodInfo(
        name="encoder",
        summary="supervised, with contextual vectors of a transformer in a local folder",
        reference=DEVLIN_2019,
        target="sslbench_methods.encoder.method:EncoderCRF",
        needs=("folder",),
    ),
    MethodInfo(
        name="tri_training",
        summary="three taggers from bootstrap samples: two teach the third where they agree",
        reference=f"{ZHOU_2005}; {SOGAARD_2010}",
        target="sslbench_methods.tri_training.method:TriTraining",
        cost=12,
    ),
    MethodInfo(
        name="hybrid",
        summary="log-linear mixture of conditional and generative models of parts of the features",
        reference=SUZUKI_2007,
        target="sslbench_methods.hybrid.method:Hybrid",
        cost=13,
        models=("crf1",),
    ),
    MethodInfo(
        name="generalized_expectation",
        summary="conditional random field that gives attributes of unlabeled text their labels",
        reference=MANN_2010,
        target="sslbench_methods.generalized_expectation.method:GeneralizedExpectation",
        cost=1.7,
        without_labels=True,
    ),
    MethodInfo(
        name="aso_semi",
        summary="supervised, with a subspace shared by predictors of words of all text as features",
        reference=ANDO_2005,
        target="sslbench_methods.aso_semi.method:AsoCRF",
        cost=4.8,
    ),
)


FEATURIZERS: tuple[FeaturizerInfo, ...] = (
    FeaturizerInfo(
        name="basic",
        summary="word, neighbors, affixes and word type: a small set for any word column",
        reference=LAFFERTY_2001,
        target="sslbench_methods.featurizers.suzuki2008:basic",
        columns=("word",),
    ),
    FeaturizerInfo(
        name="pos47",
        summary="the 47 part-of-speech templates of the JESS-CM paper",
        reference=f"{SUZUKI_2008}, table 3",
        target="sslbench_methods.featurizers.suzuki2008:pos47",
        columns=("word",),
        tasks=("tagging",),
    ),
    FeaturizerInfo(
        name="chunk39",
        summary="the 39 chunking templates of the JESS-CM paper",
        reference=f"{SUZUKI_2008}, table 3",
        target="sslbench_methods.featurizers.suzuki2008:chunk39",
        columns=("word", "pos"),
        tasks=("spans",),
    ),
    FeaturizerInfo(
        name="ner79",
        summary="the 79 named-entity templates of the JESS-CM paper",
        reference=f"{SUZUKI_2008}, table 3",
        target="sslbench_methods.featurizers.suzuki2008:ner79",
        columns=("word", "pos"),
        tasks=("spans",),
    ),
    FeaturizerInfo(
        name="ner_doc",
        summary="named entities: words, spelling, and the case of a word elsewhere in its document",
        reference=f"{CHIEU_2003} (the list is sslbench's own)",
        target="sslbench_methods.featurizers.entities:ner_doc",
        columns=("word", "pos", "chunk", "case", "cased"),
        tasks=("spans",),
    ),
    FeaturizerInfo(
        name="zh_char",
        summary="characters, their pairs and types in a window of two, for Chinese words",
        reference=f"{ZENG_2013}, table 1",
        target="sslbench_methods.featurizers.suzuki2008:zh_char",
        columns=("word",),
        tasks=("segmentation", "joint"),
    ),
    FeaturizerInfo(
        name="pos_adapt",
        summary="part-of-speech tagging across domains: words, affixes, tests of spelling",
        reference=f"{SUBRAMANYA_2010} (the list is sslbench's own)",
        target="sslbench_methods.featurizers.adaptation:pos_adapt",
        columns=("word",),
        tasks=("tagging",),
    ),
    FeaturizerInfo(
        name="pos_window",
        summary="part-of-speech tagging: forms, suffixes and spelling of three words",
        reference=HE_2013,
        target="sslbench_methods.featurizers.universal:pos_window",
        columns=("word",),
        tasks=("tagging",),
    ),
    FeaturizerInfo(
        name="gene2005",
        summary="gene names: words, affixes and 15 tests of spelling in a window of one",
        reference=f"{MCDONALD_2005}, without word lists",
        target="sslbench_methods.featurizers.genes:gene2005",
        columns=("word",),
        tasks=("spans",),
    ),
    FeaturizerInfo(
        name="pixels",
        summary="the 128 pixels of a handwritten letter, as dense columns",
        reference=HE_2013,
        target="sslbench_methods.featurizers.pixels:pixels",
        columns=("image",),
        tasks=("tagging",),
    ),
    FeaturizerInfo(
        name="pixels3",
        summary="the pixels of a handwritten letter and of its two neighbors",
        reference=HE_2013,
        target="sslbench_methods.featurizers.pixels:pixels3",
        columns=("image",),
        tasks=("tagging",),
    ),
    FeaturizerInfo(
        name="pixels3_discounted",
        summary="pixels3, each worth a tenth: small samples leave room for the order of letters",
        reference=f"{HE_2013} (the factor is that of their release)",
        target="sslbench_methods.featurizers.pixels:pixels3_discounted",
        columns=("image",),
        tasks=("tagging",),
    ),
)


MODELS: tuple[ModelInfo, ...] = (
    ModelInfo(
        name="crf1",
        summary="first-order linear-chain conditional random field",
        reference=LAFFERTY_2001,
        target="sslbench.engine.crf.chain_model:ChainModel",
    ),
    ModelInfo(
        name="crf2",
        summary="second-order chain: also weights of three labels in a row",
        reference=HE_2013,
        target="sslbench.engine.crf.chain_model:SecondOrderModel",
    ),
)


SIMILARITIES: tuple[SimilarityInfo, ...] = (
    SimilarityInfo(
        name="subramanya2010",
        summary="contexts of word trigrams and endings of the center word",
        reference=f"{SUBRAMANYA_2010}, table 1",
        target="sslbench_methods.graph_self_training.templates:similarity",
    ),
    SimilarityInfo(
        name="subramanya2010_listed",
        summary="the same with the longest suffix of a list in place of all endings",
        reference=f"{SUBRAMANYA_2010}, table 1",
        target="sslbench_methods.graph_self_training.templates:listed",
    ),
    SimilarityInfo(
        name="he2013",
        summary="contexts of lower-cased words with suffixes; leaves out punctuation",
        reference=HE_2013,
        target="sslbench_methods.graph_pr.templates:similarity",
    ),
    SimilarityInfo(
        name="zeng2013",
        summary="contexts of character trigrams and the types of the characters",
        reference=f"{ZENG_2013}, table 2",
        target="sslbench_methods.virtual_evidence.templates:similarity",
    ),
)

TEXT_FEATURES: tuple[TextFeaturesInfo, ...] = (
    TextFeaturesInfo(
        name="encoder",
        summary="contextual vectors of words, of a transformer in a local folder",
        reference=DEVLIN_2019,
        target="sslbench_methods.encoder.method:Encoder",
    ),
    TextFeaturesInfo(
        name="aso_semi",
        summary="columns of the subspace that predictors of words from their contexts share",
        reference=ANDO_2005,
        target="sslbench_methods.aso_semi.method:AsoSemi",
    ),
    TextFeaturesInfo(
        name="brown_clusters",
        summary="prefixes of the words' paths in a tree of Brown clusters",
        reference=f"{BROWN_1992}; {TURIAN_2010}",
        target="sslbench_methods.brown_clusters.method:BrownClusters",
    ),
    TextFeaturesInfo(
        name="word_vectors",
        summary="vectors of words, from a file or by factorized mutual information of neighbors",
        reference=f"{TURIAN_2010}; {LEVY_2014}",
        target="sslbench_methods.word_vectors.method:WordVectors",
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


@hookimpl
def sslbench_similarities() -> list[SimilarityInfo]:
    """Return the built-in similarities."""
    return list(SIMILARITIES)


@hookimpl
def sslbench_text_features() -> list[TextFeaturesInfo]:
    """Return the built-in features that are learned from text."""
    return list(TEXT_FEATURES)
