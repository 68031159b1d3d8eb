//go:build !unix

package write

import (
	"io/fs"
	"os"
)

// ignoreNoSync passes every error of syncing a folder: systems other than Unix cannot sync one, and report that in
// their own ways.
func ignoreNoSync(error) error { return nil }

// keepAccess does nothing: a new file gets the access list of its folder.
func keepAccess(*os.Root, string, fs.FileInfo) error { return nil }

// checkWritable passes every folder: there is no such permission.
func checkWritable(string) error { return nil }
