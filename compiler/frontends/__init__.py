"""Framework models to the graph IR, one folder a framework."""
