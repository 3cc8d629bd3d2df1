"""Registrations of domain adaptation of part-of-speech tagging: news to questions and biology."""

from __future__ import annotations

from dataclasses import replace

from sslbench import DatasetInfo, RemoteFile
from sslbench_datasets.genes.info import GENETAG
from sslbench_datasets.treebank.info import SAMPLE

_TRIVIA = (
    "https://raw.githubusercontent.com/uberspot/OpenTriviaQA/"
    "dd31530bfbb19f9505b160b89c9df4b1127e3c70/categories/"
)
_GENIA = (
    "https://raw.githubusercontent.com/cambridgeltl/MTL-Bioinformatics-2016/"
    "df0df02fae6dbb87d88ffcf323b9096528f06f84/data/GENIA-pos/"
)
_GENIA_LICENCE = (
    "CC BY 4.0 (LICENSE.md of the converters' repository, materials other than code); GENIA itself:"
    " research use"
)

QUESTIONBANK = RemoteFile(
    path="questionbank/4000qs.txt",
    urls=(
        "https://raw.githubusercontent.com/lagodiuk/tinynlp/"
        "2266bdb3da5adb43d51c6ada8b6b9209f944d08f/src/main/resources/questionbank/4000qs.txt",
    ),
    sha256="e6f6f4dc820c54242b0cf0d3bb701d9f252484b8a99f30b58fcea26a5d997537",
    licence="none stated in the copy; the authors offered it freely for research",
    bytes=532017,
)
SIMPLE_QUESTIONS = RemoteFile(
    path="simplequestions-wikidata/annotated_wd_data_train.txt",
    urls=(
        "https://raw.githubusercontent.com/askplatypus/wikidata-simplequestions/"
        "df69267f1db4f85a71325e7e8c06e192bcaf0b0e/annotated_wd_data_train.txt",
    ),
    sha256="3a4f9f8d710deaa1777dc2b7c5fb4582136fe54b7b9e2b347c6fd91bf993d3f3",
    licence="CC BY 3.0 (Facebook Inc.)",
    bytes=2141871,
    extra=True,
)
_TRIVIA_FACTS = {
    "animals": (200913, "1c38f40ac5ffd90c17f57ba5573d56c815e4ba7fe2d4dea90277d21ab1f3b699"),
    "geography": (141929, "aab2381417cb2238b35677a0708113997f3dd644f4ebe61fe13ae75f05e220d8"),
    "history": (345393, "4a2f08736c53ca86ae2a218c6e931bb81a4e18de02de8117f4bb8ab912772b12"),
    "humanities": (178024, "f31ea36da7e292e79bac8b8189390dd00b009cfac2595c8218593932c5ae1e9b"),
    "literature": (267319, "0875cf53176e83ee1154917d6b46ce184887639df8e4901b74b7edda4255fa16"),
    "religion-faith": (109380, "9a5aceaf18ad7767364a55b7cd1dd7228ccaa7e1344bd38422722e81afeba2bf"),
    "science-technology": (
        443714,
        "7a68b095da5c58a9f472170950406ebeb545e9bc0f17c8befdf185c558277949",
    ),
}
TRIVIA = tuple(
    RemoteFile(
        path=f"opentriviaqa/categories/{name}",
        urls=(f"{_TRIVIA}{name}",),
        sha256=sha256,
        licence="CC BY-SA 4.0",
        bytes=length,
        extra=True,
    )
    for name, (length, sha256) in _TRIVIA_FACTS.items()
)
QUESTION_CLASSES = RemoteFile(
    path="nltk_data/qc.zip",
    urls=(
        "https://raw.githubusercontent.com/nltk/nltk_data/5db857e6f7df11eabb5e5665836db9ec8df07e28/"
        "packages/corpora/qc.zip",
    ),
    sha256="091fb01e50883014d150acb7d5013d787136968b3f955ae01725a65e7e80f304",
    licence="none stated (X. Li, D. Roth, UIUC)",
    bytes=125456,
    extra=True,
)

# Split -> (name upstream, length in bytes, sha256).
_GENIA_FACTS = {
    "train": ("train", 3698285, "be40f9d38c603c19ab180b62f3bf5a197684aa57978f4e6d364c9d7bd0433544"),
    "dev": ("devel", 488778, "fa04121e00b45cfe0f2e2e339d7ed58a798af310da831ce2651a4f92c1fca2e4"),
    "test": ("test", 466653, "21d31fb3fdd96ae700cd28e2a33e7289e70160f45e5b91d99af7fc0b3b9b4a71"),
}
GENIA = {
    split: RemoteFile(
        path=f"mtl-bioinformatics-2016/GENIA-pos/{name}.tsv",
        urls=(f"{_GENIA}{name}.tsv",),
        sha256=sha256,
        licence=_GENIA_LICENCE,
        bytes=length,
        agreement=True,
    )
    for split, (name, length, sha256) in _GENIA_FACTS.items()
}
EBM = RemoteFile(
    path="ebm-nlp-scibert/dev.txt",
    urls=(
        "https://raw.githubusercontent.com/allenai/scibert/"
        "06793f77d7278898159ed50da30d173cdc8fdea9/data/pico/ebmnlp/dev.txt",
    ),
    sha256="1a27890b3597e2a19ebdec7a0646c694524614d64d04b7ce9e960b9ca0e576c8",
    licence="none stated for the data; the converters' repository is Apache-2.0",
    bytes=3784395,
    extra=True,
)

_SUBRAMANYA = (
    "A. Subramanya, S. Petrov, F. Pereira: Efficient graph-based semi-supervised learning of"
    " structured tagging models. EMNLP 2010"
)
_SOURCE = (
    "train = all of NLTK's sample of the Wall Street Journal (3,914 sentences, 94,084 tokens) or,"
    " with the option ptb, sections 0 to 18 of your Penn Treebank, as in the paper"
)
_TEXT = (
    "unlabeled text, always of the target: GENIA's train (14,754 sentences), EBM-NLP (7,049) and"
    " GENETAG (15,000), in a fixed random order"
)
_UNSEEN = "tags that train lacks count as errors; facts say how many tokens have one"

_BIOMEDICAL = tuple(replace(file, extra=True) for file in (GENIA["train"], EBM, *GENETAG.values()))

DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="questions",
        summary="part-of-speech tags from newswire to questions (QuestionBank)",
        reference=(
            f"{_SUBRAMANYA}; J. Judge, A. Cahill, J. van Genabith: QuestionBank: creating a corpus"
            " of parse-annotated questions. ACL 2006"
        ),
        target="sslbench_datasets.adaptation.load:load_questions",
        licence=f"train: {SAMPLE.licence}; dev and test: {QUESTIONBANK.licence}",
        task="tagging",
        metric="accuracy",
        featurizer="pos_adapt",
        protocol=(
            f"{_SOURCE}; dev, test = first and second 2,000 questions of QuestionBank (TREC 8 to"
            " 11; UIUC), in its original form: lost apostrophes and missing tags of brackets are"
            " repaired, ? ! ` ' as tags become . `` '', 3 tokens tagged NP or PRT stay;"
            " unlabeled text = SimpleQuestions (34,374 sentences) and OpenTriviaQA (11,337), with"
            " the option qc also the TREC question classification set (2,645), in a fixed random"
            " order, less what is in QuestionBank"
            f" but for case and punctuation; {_UNSEEN}. The paper's queries are not to be had"
        ),
        files=(SAMPLE, QUESTIONBANK, SIMPLE_QUESTIONS, *TRIVIA, QUESTION_CLASSES),
        options="sslbench_datasets.adaptation.load:QuestionsOptions",
        tune=4,  # the grid of the Gaussian prior, judged on the target's dev as in the paper
    ),
    DatasetInfo(
        name="bio",
        summary="part-of-speech tags from newswire to biomedical abstracts (GENIA)",
        reference=(
            f"{_SUBRAMANYA}; Y. Tateisi, J. Tsujii: Part-of-speech annotation of biology research"
            " abstracts. LREC 2004; split of G. Crichton et al., BMC Bioinformatics 18, 2017"
        ),
        target="sslbench_datasets.adaptation.load:load_bio",
        licence=f"train: {SAMPLE.licence}; dev and test: {_GENIA_LICENCE}",
        task="tagging",
        metric="accuracy",
        featurizer="pos_adapt",
        protocol=(
            f"{_SOURCE}; dev, test = GENIA's devel (1,964 sentences, 51,227 tokens) and test"
            " (1,826, 49,086) without MEDLINE's field marks, words as the treebank writes them,"
            f" the tags ( ) as -LRB- -RRB-: so all its tags are WSJ's. {_TEXT}; 14"
            " sentences of dev and 14 of test stand in it too. GENIA stands in"
            " for the paper's Penn BioTreebank and differs: names of genes and substances are NN,"
            " not NNP, and there is no HYPH or AFX"
        ),
        files=(SAMPLE, GENIA["dev"], GENIA["test"], *_BIOMEDICAL),
        options="sslbench_datasets.adaptation.load:BioOptions",
        tune=4,
    ),
    DatasetInfo(
        name="pennbioie",
        summary="part-of-speech tags from newswire to PennBioIE abstracts, from your own folder",
        reference=(
            f"{_SUBRAMANYA}; S. Kulick et al.: Integrated annotation for biomedical information"
            " extraction. BioLINK 2004"
        ),
        target="sslbench_datasets.adaptation.load:load_pennbioie",
        licence="LDC2008T20 or LDC2008T21, to be had from the Linguistic Data Consortium only",
        task="tagging",
        metric="accuracy",
        featurizer="pos_adapt",
        protocol=(
            f"{_SOURCE}; dev, test = SENT trees of the first and second half of the .mrg files"
            " below the folder of --set pennbioie.path=FOLDER, by name; with the option dev, the"
            " first so many sentences and the rest, as the paper cuts 1,061 sentences after 500"
            f" (which ones it had is not known). {_TEXT}. HYPH and AFX are not in train: {_UNSEEN}"
        ),
        files=(SAMPLE, *_BIOMEDICAL),
        own="your copy of LDC2008T20 or LDC2008T21",
        options="sslbench_datasets.adaptation.load:PennBioOptions",
        tune=4,
    ),
)
