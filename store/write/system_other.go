//go:build !unix

package write

import (
	"io/fs"
	"os"
)

// ignoreNoSync: such systems cannot sync a folder, and say so in their own ways.
func ignoreNoSync(error) error { return nil }

// keepAccess: a file has the access list of its folder.
func keepAccess(*os.Root, string, fs.FileInfo) error { return nil }

// checkWritable: such systems have no such permission.
func checkWritable(string) error { return nil }
