//go:build !unix

package build

import "os"

// lockFile does nothing: such systems do not let a file be removed that another process
// holds open, so a second builder stops when it clears the folder.
func lockFile(*os.File) error { return nil }

// ignoreNoSync: such systems cannot sync a folder, and say so in their own ways.
func ignoreNoSync(error) error { return nil }
