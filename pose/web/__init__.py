"""`pose-webcam --web`: live poses in a browser. docs/guides/web.md describes the page, the protocol and what is
guarded.
"""
