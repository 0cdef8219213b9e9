"""The project itself: its layers, pages, tools, benchmark and the helpers of its tests."""
