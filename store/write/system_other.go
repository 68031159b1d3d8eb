//go:build !unix && !windows

package write

import "os"

// lockFile: such systems have no locks that end with the process.
func lockFile(*os.File) error { return ErrNoLocks }

// ignoreNoSync: such systems cannot sync a folder, and say so in their own ways.
func ignoreNoSync(error) error { return nil }

// checkWritable: such systems have no such permission.
func checkWritable(string) error { return nil }
