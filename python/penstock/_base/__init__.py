"""What every other part of the package uses: errors, checks of options, files of this user, the program, values."""
