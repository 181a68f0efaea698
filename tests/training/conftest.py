import pose.training.research  # noqa: F401  adds the mechanisms and forms of the laboratory
