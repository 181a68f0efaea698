"""Who is who: following people from frame to frame."""
