"""The domain: data types, geometry, estimators, the temporal lifter, and the pipeline that joins them."""
