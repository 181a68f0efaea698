"""Kinds of experiments, one module each; `pose.laboratory.kinds` lists them."""
