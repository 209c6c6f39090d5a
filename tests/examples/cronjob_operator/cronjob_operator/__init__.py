"""cronjob-operator."""
