"""Skinned characters: a fixed body model, with its shape fitted to a person's bones and its pose to the joints."""
