"""The URLs of the Django app in the tests: none of its own."""

urlpatterns: list[object] = []
