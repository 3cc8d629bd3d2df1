"""Attacks on the program.

    PYTHONPATH=tests python -m attacks KIND [--number N] [--share K] [--seed S]

KIND is the name of a module: `bits`, `faults`, `kills`, `methods`, `models`, `packs`, `readers`,
`saves`, `stores`, `texts` or `ways_out`.
The command prints a Markdown table of what was tried and what came of it, and exits with status 1
if anything was lost, silent, ended in a traceback, or left a process behind.
"""
