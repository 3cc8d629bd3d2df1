"""Attacks on the program, through its command line only.

Each module prints a Markdown table of what was tried and what came of it, and exits with status 1
if anything was lost, silent, ended in a traceback, or left a process behind:
    PYTHONPATH=tests python -m attacks.kills --number 200 --seed 0
    PYTHONPATH=tests python -m attacks.saves --number 50
    PYTHONPATH=tests python -m attacks.bits --number 2000
    PYTHONPATH=tests python -m attacks.methods
    PYTHONPATH=tests python -m attacks.models
    PYTHONPATH=tests python -m attacks.texts
    PYTHONPATH=tests python -m attacks.stores
    PYTHONPATH=tests python -m attacks.disks
    PYTHONPATH=tests python -m attacks.caches
"""
