"""Audits: how often the judges agree with people (paper IV-D).

Draws a sample of decisions for labelling by hand, scores the labels, and compares the rules with labelled triples.
"""
