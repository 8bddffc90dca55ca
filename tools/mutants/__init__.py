"""Mutation testing: plants small mistakes in the code and looks whether the tests notice.

    make mutants                                   # 200 mistakes, about an hour on two cores
    .venv/bin/python -m tools.mutants --count 40 --only memory,tune

All mistakes of one run are compiled into one build, each asleep until CUOP_MUTANT names it, so that
a run costs one build and then only tests (mutant schemata: Untch, Offutt and Harrold, 1993).
"""
