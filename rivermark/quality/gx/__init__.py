"""Great Expectations: evaluation on Spark, results, Data Docs."""
