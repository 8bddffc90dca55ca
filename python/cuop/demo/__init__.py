"""The main job on real data: filter, diffuse and rebuild a photograph, find its edges, analyse
handwritten digits, and sum what is hard to sum. Every step is checked against NumPy or SciPy in
double precision."""
