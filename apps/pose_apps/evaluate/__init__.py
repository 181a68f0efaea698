"""`pose-eval`: evaluation of lifters, pipelines and predictions."""
