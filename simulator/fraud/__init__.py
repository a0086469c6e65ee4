"""Card payments and logins of made-up accounts."""
