"""One file a version of the tables. What was released is not changed any more: a change is a further file."""
