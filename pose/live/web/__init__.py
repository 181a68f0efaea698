"""`pose-webcam --web`: live poses in a browser. docs/guides/web.md describes the page and its security."""
