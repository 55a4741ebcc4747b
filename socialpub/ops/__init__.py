"""Operations: backups, the checks of the doctor, health, alerts and notifications."""
