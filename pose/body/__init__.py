"""The articulated human: rigid skeleton, joint angles, fingers, feet, characters."""
