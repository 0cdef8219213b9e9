"""Named tuples that are made by the thousand."""

of_class = tuple.__new__
"""`of_class(Point, (1, 2))` is `Point(1, 2)` without the detour through the class, which takes twice as long."""
