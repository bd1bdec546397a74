"""The issues of `dataset=assist_starter`, each with its repository."""
