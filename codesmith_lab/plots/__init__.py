"""Plots: numbers and Axes in, Axes out. Nothing here makes a figure or picks a backend."""
