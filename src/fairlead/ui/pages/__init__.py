"""The pages of the inspector, one module for each. How to add one: see `fairlead.ui`."""
