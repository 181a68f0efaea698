"""`pose-eval`: how good lifters, pipelines and predictions are."""
