"""What runs may touch: settings, the Spark session, the quality pages."""
