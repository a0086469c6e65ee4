"""The worlds that produce taxi events, and the truth about them; plain Python, no Spark.

The training's generator drips or lands as fast as possible, with declared disorder; a month of TLC
trips is replayed as it would have happened. What the pipeline has to find in the landed files is
computed here, apart from the pipeline.
"""
