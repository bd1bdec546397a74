"""Tests and intervals that the paper lacks, each by a library: statsmodels and SciPy, loaded when used."""
