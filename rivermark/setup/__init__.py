"""The JARs that Spark needs beside Python packages, fetched and checked, and a class archive."""
