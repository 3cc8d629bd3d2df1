"""Registration of the built-in methods, featurizers, chain models and similarities.

A registration is three lines: its name and target, and the cost of a method; the summary; the
reference. A name in braces is one of `references`; targets are in this package unless they name
another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sslbench import (
    FeaturizerInfo,
    MethodInfo,
    ModelInfo,
    SimilarityInfo,
    TextFeaturesInfo,
    WeakSourceInfo,
    hookimpl,
)
from sslbench_methods import references

Fields = dict[str, Any]

_METHODS = """
supervised supervised:Supervised 10
    conditional random field trained on the labeled sentences alone
    {LAFFERTY_2001}
self_training self_training:SelfTraining 2.5
    retrain on the model's own Viterbi labels until they no longer change
    {YAROWSKY_1995}
selective_self_training selective_self_training:SelectiveSelfTraining 3
    self-training on the tokens that the model is sure of, all labels of others
    {ZHANG_2021}; {CASCANTE_2021}
co_training co_training:CoTraining 6
    the word and its context teach each other, then a model of all features learns
    {BLUM_1998}, for chains
jess_cm jess_cm.method:JessCM 7.0
    conditional random field whose potentials embed one HMM per template
    {SUZUKI_2008}
graph_self_training graph_self_training.method:GraphSelfTraining 4.1
    self-training on posteriors smoothed over a graph of similar trigrams
    {SUBRAMANYA_2010}, algorithm 1
type_self_training graph_self_training.method:TypeSelfTraining 2.9
    self-training on posteriors averaged by trigram: the same without the graph
    {SUBRAMANYA_2010}, section 6
graph_lift graph_lift.method:GraphLift 3.5
    self-training that decodes with a graph's lift over base rates
    sslbench's own, after {SUBRAMANYA_2010}
virtual_evidence virtual_evidence.method:VirtualEvidenceTraining 4.9
    conditional random field that agrees with labels propagated on a graph
    {ZENG_2013}, equations 4 to 6
graph_propagation graph_pr.propagation:GraphPropagation 0.7
    labels spread over a graph of similar trigrams, without a sequence model
    {HE_2013}, equation 22 (baseline GP)
gp_crf graph_pr.gp_crf:GraphPropagationCRF 5.5
    conditional random field trained on labels spread over a graph
    {HE_2013} (baseline GP to CRF)
graph_pr graph_pr.method:GraphPR 7.4
    conditional random field with posteriors regularized over a graph, by EM
    {HE_2013}
pr1 graph_pr.method:PR1 6.3
    graph_pr after its first round
    {HE_2013} (variant PR1)
pipeline_st chinese.pipeline_st:PipelineST 0.4
    Chinese words: segment, then tag, by templates of its own (takes no featurizer)
    {ZENG_2013}, Baseline I (the templates are sslbench's own)
cluster_features chinese.cluster_features:ClusterFeatures 0.6
    pipeline_st with features from automatically analyzed text (a re-interpretation)
    {WANG_2011}
entropy_regularization entropy_regularization.method:EntropyRegularization 2.0
    conditional random field that is also sure of the unlabeled sentences
    {JIAO_2006}, equation 3
brown_clusters brown_clusters.method:BrownClustersCRF 1.3
    supervised, with Brown clusters of the words of all text as features
    {BROWN_1992}; {TURIAN_2010}
word_vectors word_vectors.method:WordVectorsCRF 1.5
    supervised, with vectors of words as features: of a file, or of all text
    {TURIAN_2010}; {LEVY_2014}
encoder encoder.method:EncoderCRF 10
    supervised, with contextual vectors of a transformer in a local folder
    {DEVLIN_2019}
adaptive_pretraining adaptive_pretraining:AdaptivePretraining 2
    a pretrained network guesses masked words of the text, then learns the labels
    {GURURANGAN_2020}
tri_training tri_training.method:TriTraining 9.0
    three taggers from bootstrap samples: two teach the third where they agree
    {ZHOU_2005}; {SOGAARD_2010}
hybrid hybrid.method:Hybrid 12.0
    log-linear mixture of conditional and generative models of parts of the features
    {SUZUKI_2007}
posterior_constraints constraints.method:PosteriorConstraints 10
    conditional random field that obeys bounds of a file on labels of unlabeled text
    {GANCHEV_2010}
generalized_expectation generalized_expectation.method:GeneralizedExpectation 1.3
    conditional random field that gives attributes of unlabeled text their labels
    {MANN_2010}
aso_semi aso_semi.method:AsoCRF 4.8
    supervised, with a subspace shared by predictors of words of all text as features
    {ANDO_2005}
structural_correspondence aso_semi.correspondence:CorrespondenceCRF 5
    supervised, with a subspace of predictors of words that both kinds of text share
    {BLITZER_2006}
weak_vote weak.method:WeakVote 3
    takes the label that most weak sources give for gold
    {MINTZ_2009}
fuzzy_crf weak.method:FuzzyCRF 4
    trusts the chunks of weak sources; elsewhere any label may be right
    {SHANG_2018}, section 3.1
noisy_channel weak.method:NoisyChannel 4
    sums over all labels, by how often weak sources are wrong about each
    {MNIH_2012}, for chains
weak_soft weak.method:WeakSoft 4
    soft targets of a label model: dawid_skene, hmm, or a model of the words too
    {DAWID_1979}; {LISON_2020}
weak_trust weak.trust:WeakTrust 60
    the learner of weak labels, or gold labels alone, that tags held-out gold sentences best
    sslbench's own
"""

_FEATURIZERS = """
basic featurizers.suzuki2008:basic
    word, neighbors, affixes and word type: a small set for any word column
    {LAFFERTY_2001}
pos47 featurizers.suzuki2008:pos47
    the 47 part-of-speech templates of the JESS-CM paper
    {SUZUKI_2008}, table 3
chunk39 featurizers.suzuki2008:chunk39
    the 39 chunking templates of the JESS-CM paper
    {SUZUKI_2008}, table 3
ner79 featurizers.suzuki2008:ner79
    the 79 named-entity templates of the JESS-CM paper
    {SUZUKI_2008}, table 3
ner_doc featurizers.entities:ner_doc
    named entities: words, spelling, and the case of a word elsewhere in its document
    {CHIEU_2003} (the list is sslbench's own)
zh_char featurizers.suzuki2008:zh_char
    characters, their pairs and types in a window of two, for Chinese words
    {ZENG_2013}, table 1
pos_adapt featurizers.adaptation:pos_adapt
    part-of-speech tagging across domains: words, affixes, tests of spelling
    {SUBRAMANYA_2010} (the list is sslbench's own)
pos_window featurizers.universal:pos_window
    part-of-speech tagging: forms, suffixes and spelling of three words
    {HE_2013}
gene2005 featurizers.genes:gene2005
    gene names: words, affixes and 15 tests of spelling in a window of one
    {MCDONALD_2005}, without word lists
pixels featurizers.pixels:pixels
    the 128 pixels of a handwritten letter, as dense columns
    {HE_2013}
pixels3 featurizers.pixels:pixels3
    the pixels of a handwritten letter and of its two neighbors
    {HE_2013}
pixels3_discounted featurizers.pixels:pixels3_discounted
    pixels3, each worth a tenth: small samples leave room for the order of letters
    {HE_2013} (the factor is that of their release)
"""

_MODELS = """
crf1 sslbench.engine.crf.chain_model:ChainModel 1
    first-order linear-chain conditional random field
    {LAFFERTY_2001}
crf2 sslbench.engine.crf.chain_model:SecondOrderModel 3
    second-order chain: also weights of three labels in a row
    {HE_2013}
bilstm neural.bilstm:BiLSTMModel 50
    bidirectional LSTM over words and characters, with a chain on top
    {MA_2016}
transformer neural.transformer:TransformerModel 150
    pretrained transformer of a local folder, trained with a chain on top
    {DEVLIN_2019}
"""

_SIMILARITIES = """
subramanya2010 graph_self_training.templates:similarity
    contexts of word trigrams and endings of the center word
    {SUBRAMANYA_2010}, table 1
subramanya2010_listed graph_self_training.templates:listed
    the same with the longest suffix of a list in place of all endings
    {SUBRAMANYA_2010}, table 1
he2013 graph_pr.templates:similarity
    contexts of lower-cased words with suffixes; leaves out punctuation
    {HE_2013}
zeng2013 virtual_evidence.templates:similarity
    contexts of character trigrams and the types of the characters
    {ZENG_2013}, table 2
"""

_TEXT_FEATURES = """
encoder encoder.method:Encoder
    contextual vectors of words, of a transformer in a local folder
    {DEVLIN_2019}
aso_semi aso_semi.method:AsoSemi
    columns of the subspace that predictors of words from their contexts share
    {ANDO_2005}
structural_correspondence aso_semi.correspondence:Correspondence
    columns of the subspace of predictors of words that labeled and unlabeled text share
    {BLITZER_2006}
brown_clusters brown_clusters.method:BrownClusters
    prefixes of the words' paths in a tree of Brown clusters
    {BROWN_1992}; {TURIAN_2010}
word_vectors word_vectors.method:WordVectors
    vectors of words, from a file or by factorized mutual information of neighbors
    {TURIAN_2010}; {LEVY_2014}
"""

_WEAK_SOURCES = """
gazetteer weak.sources:Gazetteer
    phrases of a file with their types; the longest one at a place counts
    {MINTZ_2009}
patterns weak.sources:Patterns
    regular expressions of a file with the types of what they match
    {LISON_2020}
"""

_CHINESE: Fields = {"tasks": ("segmentation", "joint")}
_FIRST_ORDER: Fields = {"needs_model": ("first_order",)}
_READS_FEATURES: Fields = {"needs_model": ("features",)}
_READS_WEIGHTS: Fields = {"needs_model": ("log_linear", "features")}
_WEAK: Fields = {"weak": True}
#: fields of a method besides those of its row
_OF_METHOD: Mapping[str, Fields] = {
    "supervised": {"baseline": True, "labels_only": True},
    "self_training": {"labels_only": True},
    "tri_training": {"labels_only": True},
    "graph_self_training": _FIRST_ORDER,
    "type_self_training": _FIRST_ORDER,
    "co_training": _READS_FEATURES,
    "jess_cm": {"needs_model": ("log_linear", "factors", "features")},
    "pipeline_st": {**_CHINESE, **_READS_WEIGHTS},
    "cluster_features": {**_CHINESE, **_READS_WEIGHTS},
    "brown_clusters": _READS_FEATURES,
    "word_vectors": _READS_FEATURES,
    "encoder": {"needs": ("folder",), **_READS_FEATURES},
    "aso_semi": _READS_FEATURES,
    "structural_correspondence": _READS_FEATURES,
    "hybrid": {"needs_model": ("log_linear", "factors", "first_order", "features")},
    "adaptive_pretraining": {"needs_model": ("masked_words",)},
    "generalized_expectation": {"without_labels": True, **_READS_WEIGHTS},
    "posterior_constraints": {"needs": ("constraints",)},
    "weak_vote": _WEAK,
    "fuzzy_crf": _WEAK,
    "noisy_channel": _WEAK,
    "weak_soft": _WEAK,
    "weak_trust": _WEAK,
}
#: last bits of a training in single precision decide some 1 % of the labels (docs/transformer.md)
_SINGLE: Fields = {"tolerance": 0.03}
#: fields of a model besides those of its row
_OF_MODEL: Mapping[str, Fields] = {
    "crf1": {"provides": ("log_linear", "factors", "first_order", "features")},
    "crf2": {"provides": ("log_linear", "factors", "features")},
    "bilstm": {"provides": ("first_order",), **_SINGLE},
    "transformer": {"provides": ("first_order", "masked_words"), **_SINGLE},
}
#: fields of a featurizer besides those of its row
_OF_FEATURIZER: Mapping[str, Fields] = {
    "pos47": {"tasks": ("tagging",)},
    "chunk39": {"columns": ("word", "pos"), "tasks": ("spans",)},
    "ner79": {"columns": ("word", "pos"), "tasks": ("spans",)},
    "ner_doc": {"columns": ("word", "pos", "chunk", "case", "cased"), "tasks": ("spans",)},
    "zh_char": _CHINESE,
    "pos_adapt": {"tasks": ("tagging",)},
    "pos_window": {"tasks": ("tagging",)},
    "gene2005": {"tasks": ("spans",)},
    "pixels": {"columns": ("image",), "tasks": ("tagging",)},
    "pixels3": {"columns": ("image",), "tasks": ("tagging",)},
    "pixels3_discounted": {"columns": ("image",), "tasks": ("tagging",)},
}


def _rows(table: str, more: Mapping[str, Fields] | None = None) -> Iterator[Fields]:
    """Yield the fields of each registration of a table."""
    lines = table.strip().splitlines()
    for first, summary, reference in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        name, target, *cost = first.split()
        package = "" if target.startswith("sslbench.") else "sslbench_methods."
        yield {
            "name": name,
            "summary": summary.strip(),
            "reference": reference.strip().format_map(vars(references)),
            "target": package + target,
            **({"cost": float(cost[0])} if cost else {}),
            **(more or {}).get(name, {}),
        }


@hookimpl
def sslbench_methods() -> list[MethodInfo]:
    """Return the built-in methods."""
    return [MethodInfo(**fields) for fields in _rows(_METHODS, _OF_METHOD)]


@hookimpl
def sslbench_featurizers() -> list[FeaturizerInfo]:
    """Return the built-in featurizers."""
    return [FeaturizerInfo(**fields) for fields in _rows(_FEATURIZERS, _OF_FEATURIZER)]


@hookimpl
def sslbench_models() -> list[ModelInfo]:
    """Return the built-in models."""
    return [ModelInfo(**fields) for fields in _rows(_MODELS, _OF_MODEL)]


@hookimpl
def sslbench_similarities() -> list[SimilarityInfo]:
    """Return the built-in similarities."""
    return [SimilarityInfo(**fields) for fields in _rows(_SIMILARITIES)]


@hookimpl
def sslbench_text_features() -> list[TextFeaturesInfo]:
    """Return the built-in features that are learned from text."""
    return [TextFeaturesInfo(**fields) for fields in _rows(_TEXT_FEATURES)]


@hookimpl
def sslbench_weak_sources() -> list[WeakSourceInfo]:
    """Return the built-in sources of weak labels."""
    return [WeakSourceInfo(**fields) for fields in _rows(_WEAK_SOURCES)]
