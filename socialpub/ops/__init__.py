"""Operations: backup and restore, the doctor's checks, health."""
