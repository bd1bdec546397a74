"""Audits: how often the judges agree with people (paper IV-D).

A sample of decisions is drawn for labelling by hand, the labels are scored; and the rules are held to labelled triples.
"""
