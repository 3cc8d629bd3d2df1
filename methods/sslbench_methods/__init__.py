"""Built-in methods, featurizers and models: a plugin like any third party's."""
