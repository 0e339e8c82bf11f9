"""The data pipeline on Spark: archive of the event logs, bulk recomputation of views, verification of live ones.

The only place that imports pyspark. Nothing else starts a JVM: whoever needs Spark imports a module of this folder.
"""
