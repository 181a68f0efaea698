"""Skinned characters: a frozen body model, its shape fitted to a person's bones, and its pose fitted to the joints."""
