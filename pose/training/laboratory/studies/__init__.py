"""Kinds of experiments, one module each; `pose.training.laboratory.kinds` lists them."""
