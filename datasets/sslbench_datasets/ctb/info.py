"""Registration of ``ctb7``: Chinese Treebank 7.0, from the licence holder's folder."""

from __future__ import annotations

from sslbench import DatasetInfo
from sslbench_datasets import references
from sslbench_datasets.chinese.info import JOINT_LABELS, RAW_TEXT

# (files, sentences) according to the LDC catalog.
COUNTS = (2_448, 51_447)

# Numbers NNNN of the files chtb_NNNN, after Wang et al. (2011); all other files are train.
DEV = (
    "41-80,203-233,301-325,400-409,591,613-617,643-673,1022-1035,1120-1129,2110-2159,2270-2294,"
    "2510-2569,2760-2799,3040-3109,4040-4059,4084-4085,4090,4096,4106-4108,4113-4115,4121,4128,"
    "4132,4135,4158-4162,4169,4189,4196,4236-4261,4322,4335-4336,4407-4411"
)
TEST = (
    "1-40,144-174,271-300,410-428,592,900-931,1009-1020,1036,1044,1060-1061,1072,1118-1119,1132,"
    "1141-1142,1148,2000-2010,2160-2220,2295-2330,2570-2640,2800-2845,3110-3145,4030-4039,"
    "4060-4070,4086-4087,4091,4097,4109-4112,4118-4120,4127,4133-4134,4136-4139,4163-4168,4188,"
    "4197-4235,4321,4334,4337,4400-4406"
)

DATASETS: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="ctb7",
        summary="Chinese Treebank 7.0: word borders and 33 tags; from your own folder",
        reference=f"{references.XUE_2010}; split: {references.WANG_2011}",
        target="sslbench_datasets.ctb.load:load",
        licence="LDC2010T07, available from the Linguistic Data Consortium only",
        task="joint",
        family="Chinese",
        metric="joint_f1",
        featurizer="zh_char",
        protocol=(
            f"{JOINT_LABELS}; train, dev and test by file number (Wang et al. 2011); give the"
            " folder with --data FOLDER or --set ctb7.path=FOLDER; external text = the SIGHAN texts"
            " of zh_zx without spaces, or your own (option unlabeled). X. Zeng et al. (ACL 2013)"
            " have 17,968, 1,659 and 2,037 sentences and do not name the files: --labeled 17968"
            " draws as many sentences, the rest of train is unlabeled text, and scores are not"
            " comparable with theirs"
        ),
        files=RAW_TEXT,
        own="your copy of LDC2010T07",
        options="sslbench_datasets.ctb.load:Options",
    ),
)
