"""The URLs of the Django app in the tests, which has no pages besides the dashboard."""

urlpatterns: list[object] = []
