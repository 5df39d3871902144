"""The graph IR to files of other tools, one folder a format."""
