"""Pictures of what an encoder does: its attention, and its vectors of words in context.

They need matplotlib, which the extra `pictures` brings along; it is loaded when one is drawn.
"""
