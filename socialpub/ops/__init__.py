"""Operations: copies of everything, the checks of the doctor, health, and what the owner is told."""
