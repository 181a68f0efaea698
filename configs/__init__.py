"""Presets: pipelines and training recipes, as YAML files beside this one."""
