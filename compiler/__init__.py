"""The bundled compiler: framework model -> graph -> passes -> program -> simulated accelerator."""
