"""Registrations of domain adaptation of part-of-speech tagging: news to questions and biology."""

from __future__ import annotations

from dataclasses import replace

from sslbench import DatasetInfo
from sslbench_datasets import references
from sslbench_datasets.genes.info import GENETAG, MTL
from sslbench_datasets.treebank.info import SAMPLE
from sslbench_datasets.upstream import GITHUB, NLTK, Upstream, size

QUESTIONBANK = Upstream(
    "questionbank",
    f"{GITHUB}/lagodiuk/tinynlp/2266bdb3da5adb43d51c6ada8b6b9209f944d08f/src/main/resources"
    "/questionbank",
    "none stated in the copy; the authors offered it freely for research",
).file("4000qs.txt", 532017, "e6f6f4dc820c54242b0cf0d3bb701d9f252484b8a99f30b58fcea26a5d997537")
SIMPLE_QUESTIONS = Upstream(
    "simplequestions-wikidata",
    f"{GITHUB}/askplatypus/wikidata-simplequestions/df69267f1db4f85a71325e7e8c06e192bcaf0b0e",
    "CC BY 3.0 (Facebook Inc.)",
).file(
    "annotated_wd_data_train.txt",
    2141871,
    "3a4f9f8d710deaa1777dc2b7c5fb4582136fe54b7b9e2b347c6fd91bf993d3f3",
    extra=True,
)
TRIVIA = Upstream(
    "opentriviaqa/categories",
    f"{GITHUB}/uberspot/OpenTriviaQA/dd31530bfbb19f9505b160b89c9df4b1127e3c70/categories",
    "CC BY-SA 4.0",
).files(
    """
animals 200913 1c38f40ac5ffd90c17f57ba5573d56c815e4ba7fe2d4dea90277d21ab1f3b699
geography 141929 aab2381417cb2238b35677a0708113997f3dd644f4ebe61fe13ae75f05e220d8
history 345393 4a2f08736c53ca86ae2a218c6e931bb81a4e18de02de8117f4bb8ab912772b12
humanities 178024 f31ea36da7e292e79bac8b8189390dd00b009cfac2595c8218593932c5ae1e9b
literature 267319 0875cf53176e83ee1154917d6b46ce184887639df8e4901b74b7edda4255fa16
religion-faith 109380 9a5aceaf18ad7767364a55b7cd1dd7228ccaa7e1344bd38422722e81afeba2bf
science-technology 443714 7a68b095da5c58a9f472170950406ebeb545e9bc0f17c8befdf185c558277949
""",
    extra=True,
)
QUESTION_CLASSES = Upstream("nltk_data", NLTK, "none stated (X. Li, D. Roth, UIUC)").file(
    "qc.zip",
    125456,
    "091fb01e50883014d150acb7d5013d787136968b3f955ae01725a65e7e80f304",
    extra=True,
)
GENIA = Upstream(
    "mtl-bioinformatics-2016/GENIA-pos",
    f"{MTL}/GENIA-pos",
    "CC BY 4.0 (LICENSE.md of the converters' repository, materials other than code); GENIA itself:"
    " research use",
    agreement=True,
).splits("""
train.tsv 3698285 be40f9d38c603c19ab180b62f3bf5a197684aa57978f4e6d364c9d7bd0433544
devel.tsv 488778 fa04121e00b45cfe0f2e2e339d7ed58a798af310da831ce2651a4f92c1fca2e4
test.tsv 466653 21d31fb3fdd96ae700cd28e2a33e7289e70160f45e5b91d99af7fc0b3b9b4a71
""")
EBM = Upstream(
    "ebm-nlp-scibert",
    f"{GITHUB}/allenai/scibert/06793f77d7278898159ed50da30d173cdc8fdea9/data/pico/ebmnlp",
    "none stated for the data; the converters' repository is Apache-2.0",
).file(
    "dev.txt",
    3784395,
    "1a27890b3597e2a19ebdec7a0646c694524614d64d04b7ce9e960b9ca0e576c8",
    extra=True,
)

# (sentences, tokens); GENIA without field marks.
QUESTION_COUNTS = {"dev": (2_000, 17_069), "test": (2_000, 20_774)}
GENIA_COUNTS = {"dev": (1_964, 51_227), "test": (1_826, 49_086)}
# Unlabeled question sets -> (sentences used, sentences left out as duplicates of QuestionBank).
QUESTION_SETS = {"simplequestions": (34_374, 0), "opentriviaqa": (11_337, 4), "qc": (2_645, 3_307)}

_SOURCE = (
    "train = all of NLTK's sample of the Wall Street Journal (3,914 sentences, 94,084 tokens) or,"
    " with the option ptb, sections 0 to 18 of your Penn Treebank, as in the paper"
)
_TEXT = (
    "unlabeled text, always of the target domain = GENIA's train (14,754 sentences), EBM-NLP"
    " (7,049) and GENETAG (15,000), in a fixed random order"
)
_UNSEEN = "tags that train lacks count as errors; the record has the number of such tokens"

_BIOMEDICAL = tuple(replace(file, extra=True) for file in (GENIA["train"], EBM, *GENETAG.values()))


def _sizes(counts: dict[str, tuple[int, int]]) -> tuple[str, ...]:
    return tuple(size(pair, "sentences", "tokens") for pair in counts.values())


_QUESTIONS_DEV, _QUESTIONS_TEST = _sizes(QUESTION_COUNTS)
_GENIA_DEV, _GENIA_TEST = _sizes(GENIA_COUNTS)

DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="questions",
        summary="part-of-speech tags from newswire to questions (QuestionBank)",
        reference=f"{references.SUBRAMANYA_2010}; {references.JUDGE_2006}",
        target="sslbench_datasets.adaptation.load:load_questions",
        licence=f"train: {SAMPLE.licence}; dev and test: {QUESTIONBANK.licence}",
        task="tagging",
        family="questions",
        metric="accuracy",
        featurizer="pos_adapt",
        protocol=(
            f"{_SOURCE}; dev = first half of QuestionBank (TREC 8 to 11; {_QUESTIONS_DEV}), test ="
            f" second half (UIUC; {_QUESTIONS_TEST}), in its original form: lost apostrophes and"
            " missing tags of brackets are repaired, the tags ? ! ` ' are rewritten as . `` '', 3"
            " tokens tagged NP or PRT stay; unlabeled text = SimpleQuestions"
            f" ({QUESTION_SETS['simplequestions'][0]:,} sentences), OpenTriviaQA"
            f" ({QUESTION_SETS['opentriviaqa'][0]:,}) and, with the option qc, the TREC question"
            f" classification set ({QUESTION_SETS['qc'][0]:,}), in a fixed random order, without"
            " sentences that are in QuestionBank (ignoring case and punctuation);"
            f" {_UNSEEN}. The paper's search queries are not available"
        ),
        files=(SAMPLE, QUESTIONBANK, SIMPLE_QUESTIONS, *TRIVIA, QUESTION_CLASSES),
        options="sslbench_datasets.adaptation.load:QuestionsOptions",
    ),
    DatasetInfo(
        name="bio",
        summary="part-of-speech tags from newswire to biomedical abstracts (GENIA)",
        reference=(
            f"{references.SUBRAMANYA_2010}; {references.TATEISI_2004}; split:"
            f" {references.CRICHTON_2017}"
        ),
        target="sslbench_datasets.adaptation.load:load_bio",
        licence=f"train: {SAMPLE.licence}; dev and test: {GENIA['test'].licence}",
        task="tagging",
        family="biology tags",
        metric="accuracy",
        featurizer="pos_adapt",
        protocol=(
            f"{_SOURCE}; dev = GENIA's devel ({_GENIA_DEV}), test = GENIA's test ({_GENIA_TEST}),"
            " without MEDLINE's field marks, in the treebank's tokenization, with the tags ( ) as"
            f" -LRB- -RRB-, so that train has all tags. {_TEXT}; 14 sentences of dev and 14 of"
            " test are in it. GENIA replaces the paper's Penn BioTreebank and differs from it:"
            " names of genes and substances are NN, not NNP, and there is no HYPH or AFX"
        ),
        files=(SAMPLE, GENIA["dev"], GENIA["test"], *_BIOMEDICAL),
        options="sslbench_datasets.adaptation.load:BioOptions",
    ),
    DatasetInfo(
        name="pennbioie",
        summary="part-of-speech tags from newswire to PennBioIE abstracts, from your own folder",
        reference=f"{references.SUBRAMANYA_2010}; {references.KULICK_2004}",
        target="sslbench_datasets.adaptation.load:load_pennbioie",
        licence="LDC2008T20 or LDC2008T21, available from the Linguistic Data Consortium only",
        task="tagging",
        family="biology tags",
        metric="accuracy",
        featurizer="pos_adapt",
        protocol=(
            f"{_SOURCE}; dev, test = SENT trees of the first and second half of the .mrg files,"
            " by name, in the folder of --set pennbioie.path=FOLDER; with the option dev=N, the"
            " first N sentences and the rest. (The paper has 1,061 sentences, 500 of them dev, and"
            f" does not name them.) {_TEXT}. Train has no HYPH and AFX: {_UNSEEN}"
        ),
        files=(SAMPLE, *_BIOMEDICAL),
        own="your copy of LDC2008T20 or LDC2008T21",
        options="sslbench_datasets.adaptation.load:PennBioOptions",
    ),
)
