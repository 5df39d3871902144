"""Graph and target -> executable: placement, kernels read off structured loops, tiling, memory plan, schedule."""
