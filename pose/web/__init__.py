"""`pose-webcam --web`: live poses in a browser. docs/web.md describes the page, the protocol and what is guarded."""
