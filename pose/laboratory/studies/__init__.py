"""What an experiment can be, one module a kind; `pose.laboratory.kinds` lists them."""
